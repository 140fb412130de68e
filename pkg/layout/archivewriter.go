package layout

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"sync"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ArchiveWriter makes an [Archive], as the [Store] that artifacts are pushed to:
//
//	w := layout.CreateArchive("m.oci.tar", false)
//	there, err := w.Begin(ctx, contents)
//	if err == nil && !there {
//		_, err = layout.Push(ctx, w, artifact, opts) // once for each of them
//	}
//	err = w.End(err)
//
// What is to be in it is said first. Where each blob lies follows from that, so that
// blobs come at once, each from many ranges, straight to where they stay. The file
// gets its name in End, when all of it is there, verified and on the disk, and not
// before: nothing can be half an archive.
//
// The bytes are a pure function of the contents: a [TarPlan] of oci-layout, index.json
// and the blobs. index.json lists the manifests in the order of the contents.
type ArchiveWriter struct {
	path    string
	replace bool

	plan    *TarPlan // nil before Begin
	index   []byte
	parts   map[digest.Digest]int // in the job
	file    *place.File
	partial *download.Partial

	mu     sync.Mutex
	stored map[digest.Digest]int64 // with their sizes
}

var _ Store = (*ArchiveWriter)(nil)

// ArchiveContent is a manifest that an archive is to hold, with all its blobs.
type ArchiveContent struct {
	*Artifact
	Tags []string
}

// CreateArchive returns the writer of a file, which replaces one that exists or does
// not. Before Begin the store is an empty one that takes nothing.
func CreateArchive(path string, replace bool) *ArchiveWriter {
	return &ArchiveWriter{path: path, replace: replace, stored: map[digest.Digest]int64{}}
}

// Path returns the file's path as it was given.
func (w *ArchiveWriter) Path() string { return w.path }

// Begin lays the archive out and begins the file, or goes on with what an earlier run
// left of the same contents. Where the file exists and is not to be replaced it is
// read: there reports that it is, byte for byte, what would be made, and that there is
// nothing to push; any other is [ErrExist]. An error is given to End, as those of
// pushes are.
func (w *ArchiveWriter) Begin(ctx context.Context, contents []ArchiveContent) (there bool, err error) {
	layers, err := w.lay(contents)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(w.path); err == nil && !w.replace {
		return w.same(ctx)
	}
	file, err := place.Create(w.path, place.Options{Replace: w.replace, Resume: true})
	if err != nil {
		return false, err
	}
	w.file, w.partial = file, download.NewPartial(file)
	job := w.job(layers)
	if err := w.partial.TakeOver(ctx, "archive", &job); err != nil {
		return false, place.Explain("write", w.path, err)
	}
	return false, w.file.Truncate(w.plan.Size())
}

// lay plans the tar. It returns the blobs but for manifests, in their order in it.
func (w *ArchiveWriter) lay(contents []ArchiveContent) ([]Layer, error) {
	x := &indexFile{SchemaVersion: 2, MediaType: ocispec.MediaTypeImageIndex, Manifests: []indexEntry{}}
	sizes, known := map[string]int64{}, map[string]Layer{}
	add := func(l Layer) error {
		if err := CheckDescriptor(l.Descriptor); err != nil {
			return err
		}
		name := blobPrefix + l.Digest.Encoded()
		if size, ok := sizes[name]; ok && size != l.Size {
			return errorf(ErrFormat, string(l.Digest), "has two sizes: %d and %d", size, l.Size)
		}
		sizes[name] = l.Size
		return nil
	}
	for _, c := range contents {
		if c.Complete != nil {
			return nil, errorf(ErrUnsupported, w.path, "is an archive, which takes no layer whose digest is not known")
		}
		x.put(c.Descriptor, c.Tags)
		if err := add(manifestLayer(c.Descriptor, c.Manifest)); err != nil {
			return nil, err
		}
		for _, l := range c.blobs() {
			if err := add(l); err != nil {
				return nil, err
			}
			known[blobPrefix+l.Digest.Encoded()] = l
		}
	}
	var err error
	if w.index, err = jsonstream.Marshal(x, ""); err != nil {
		return nil, err
	}
	sizes[ocispec.ImageIndexFile], sizes[ocispec.ImageLayoutFile] = int64(len(w.index)), int64(len(layoutFile))
	entries := make([]TarEntry, 0, len(sizes))
	for name, size := range sizes {
		entries = append(entries, TarEntry{Path: name, Size: size})
	}
	if w.plan, err = NewTarPlan(entries); err != nil {
		return nil, err
	}
	var layers []Layer
	w.parts = map[digest.Digest]int{}
	for e := range w.plan.Entries() {
		if l, ok := known[e.Path]; ok {
			w.parts[l.Digest] = len(layers)
			layers = append(layers, l)
		}
	}
	return layers, nil
}

// layoutFile is oci-layout, the same in all image layouts.
const layoutFile = `{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`

// job is the download of all blobs. It is run a part at a time, as they are pushed.
func (w *ArchiveWriter) job(layers []Layer) download.Job {
	job := download.Job{
		Range: func(ctx context.Context, i int, off, n int64) (io.ReadCloser, error) {
			return layers[i].OpenRange(ctx, off, n)
		},
		Whole: func(ctx context.Context, i int) (io.ReadCloser, error) { return layers[i].Open(ctx, 0) },
	}
	for i := range layers {
		l := &layers[i]
		part := l.part()
		part.Offset = w.offset(l.Digest)
		// Where a blob lies follows from all that the archive holds. One with other
		// manifests is another archive, and nobody is wrong about a size.
		part.Name = fmt.Sprintf("%s at %d", l.Digest, part.Offset)
		job.Parts = append(job.Parts, part)
	}
	return job
}

// offset returns where a blob lies.
func (w *ArchiveWriter) offset(dgst digest.Digest) int64 {
	off, _, _ := w.plan.Extent(blobPrefix + dgst.Encoded())
	return off
}

// Push implements [Store], of a blob that Begin was told of. What an earlier run
// brought is read and hashed again.
func (w *ArchiveWriter) Push(ctx context.Context, l Layer, watch Watch) error {
	if err := CheckDescriptor(l.Descriptor); err != nil {
		return err
	}
	i, ok := w.parts[l.Digest]
	if !ok {
		return errorf(ErrUnsupported, string(l.Digest), "was not planned to be in the archive %s", quote(w.path))
	}
	if w.has(l.Digest) {
		return nil
	}
	filling := &filling{Watch: watch.NonNil()}
	job := l.job(ctx, blobFile{w.file, w.offset(l.Digest)})
	result, err := w.partial.RunPart(ctx, i, job,
		download.Options{Concurrency: l.Connections, Progress: filling.report})
	if err != nil {
		return attempted{err}
	}
	filling.end(l.Size, result.Resumed)
	w.note(l.Descriptor)
	return nil
}

// note remembers that a blob is there.
func (w *ArchiveWriter) note(desc ocispec.Descriptor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored[desc.Digest] = desc.Size
}

func (w *ArchiveWriter) has(dgst digest.Digest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.stored[dgst]
	return ok
}

// PutManifest implements [Store], of a manifest that Begin was told of. Its tags are
// those of then.
func (w *ArchiveWriter) PutManifest(ctx context.Context, desc ocispec.Descriptor, content []byte, _ PutOptions) error {
	if err := checkContent(desc, content); err != nil {
		return err
	}
	if w.plan == nil {
		return errorf(ErrUnsupported, w.path, "is an archive that was not begun")
	}
	off, n, ok := w.plan.Extent(blobPrefix + desc.Digest.Encoded())
	if !ok || n != desc.Size {
		return errorf(ErrUnsupported, string(desc.Digest), "was not planned to be in the archive %s", quote(w.path))
	}
	if _, err := w.file.WriteAt(content, off); err != nil {
		return err
	}
	w.note(desc)
	return nil
}

// End ends the archive: it gets its name where err is nil and all of it is there, and
// else stays beside that for another run, where that has something to go on with. It
// returns the error that there is then, with what can be done.
func (w *ArchiveWriter) End(err error) error {
	if w.file == nil {
		return err
	}
	if err == nil {
		err = w.finish()
	}
	return w.partial.End(err)
}

// finish writes what is no blob: what was left here unfinished has no headers, and
// nobody takes it for an archive.
func (w *ArchiveWriter) finish() error {
	texts := map[string][]byte{ocispec.ImageIndexFile: w.index, ocispec.ImageLayoutFile: []byte(layoutFile)}
	for i := range w.plan.items {
		it := &w.plan.items[i]
		text := texts[it.Path]
		if !it.folder && text == nil && !w.has(digest.NewDigestFromEncoded(digest.SHA256, path.Base(it.Path))) {
			return errorf(ErrNotFound, it.Path, "was planned to be in the archive %s, and was not pushed",
				quote(w.path))
		}
		header, err := it.headerBytes()
		if err != nil {
			return err
		}
		if _, err := w.file.WriteAt(append(header, text...), it.header); err != nil {
			return err
		}
		// An earlier run may have left another text, or another manifest, that is longer.
		if gap := it.end() - it.data - it.Size; gap > 0 {
			if _, err := w.file.WriteAt(make([]byte, gap), it.data+it.Size); err != nil {
				return err
			}
		}
	}
	_, err := w.file.WriteAt(make([]byte, tarEnd), w.plan.size-tarEnd)
	return err
}

// blobFile is a blob's place in the archive.
type blobFile struct {
	f   *place.File
	off int64
}

func (b blobFile) ReadAt(p []byte, off int64) (int, error)  { return b.f.ReadAt(p, b.off+off) }
func (b blobFile) WriteAt(p []byte, off int64) (int, error) { return b.f.WriteAt(p, b.off+off) }
func (b blobFile) Close() error                             { return nil }
func (b blobFile) StartWriteback(off, n int64)              { b.f.StartWriteback(b.off+off, n) }
