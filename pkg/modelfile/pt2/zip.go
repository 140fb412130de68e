package pt2

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/iox"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/zipdir"
)

const (
	// maxWord is the longest file of one word, in bytes.
	maxWord = 256
	// mergeGap is how far apart documents may be that are read at once, and
	// mergeBytes how long what is read at once.
	mergeGap   = 64 << 10
	mergeBytes = 8 << 20
	// chunkBytes is how much of a longer document is read at once.
	chunkBytes = 1 << 20
)

// errSource marks what the source of bytes failed with.
var errSource = errors.New("read the archive")

// zipFiles are an archive's files.
type zipFiles struct {
	dir    *zipdir.Directory
	byName map[string]*zipdir.Entry
	prefix string // the root folder and "/"
	r      io.ReaderAt
	json   int64 // bytes of documents that were read
	kept   int64 // bytes of what they said
}

// maxKept is MaxKeptBytes, but for tests.
var maxKept int64 = MaxKeptBytes

// keep counts what is kept of documents: a value with these strings and so many
// dimensions.
func (z *zipFiles) keep(dims int, strings ...string) error {
	const value, dim = 100, 24
	z.kept += value + dim*int64(dims)
	for _, s := range strings {
		z.kept += int64(len(s))
	}
	if z.kept > maxKept {
		return errtext.Limit(ErrFormat, "its documents say more than %d bytes", maxKept)
	}
	return nil
}

func readZip(r io.ReaderAt, size int64) (*zipFiles, error) {
	dir, err := zipdir.Read(r, size, zipdir.Options{MaxEntries: MaxEntries, MaxDirectoryBytes: MaxDirectoryBytes})
	if err != nil {
		return nil, zipError(err)
	}
	z := &zipFiles{dir: dir, byName: make(map[string]*zipdir.Entry, len(dir.Files)), r: dir.ReaderAt()}
	for _, e := range dir.Files {
		z.byName[e.Name] = e
	}
	return z, nil
}

// zipError tells a broken zip from a source that fails.
func zipError(err error) error {
	var broken *zipdir.Error
	switch {
	case !errors.As(err, &broken):
		return fmt.Errorf("%w: %w", errSource, err)
	case errors.Is(err, zipdir.ErrLimit):
		return errtext.Limit(ErrFormat, "%s", broken.Msg)
	}
	return fmt.Errorf("%w: %s", ErrFormat, broken.Error())
}

// predicted returns where the content of e must begin, as the directory alone can
// tell, so that an archive of a thousand weights is listed without a thousand
// small reads: it ends before a data descriptor as PyTorch writes it, and that
// where the next entry begins. [Tensor.Read] holds the local header against it.
func predicted(e *zipdir.Entry) int64 {
	data := e.End - e.Packed
	switch {
	case e.Streamed() && e.Zip64: // sizes of 64 bits
		return data - 24
	case e.Streamed():
		return data - 16
	}
	return data
}

// entry returns the entry of a file, nil where there is none.
func (z *zipFiles) entry(name string) *zipdir.Entry { return z.byName[z.prefix+name] }

func (z *zipFiles) has(name string) bool { return z.entry(name) != nil }

// below reports whether there is a file whose name begins so.
func (z *zipFiles) below(prefix string) bool {
	return slices.ContainsFunc(z.dir.Files,
		func(e *zipdir.Entry) bool { return strings.HasPrefix(e.Name, z.prefix+prefix) })
}

// root returns the folder that all files lie in.
func (z *zipFiles) root() (string, bool) {
	root := ""
	for i, e := range z.dir.Files {
		first, _, ok := strings.Cut(e.Name, "/")
		if !ok || i > 0 && first != root {
			return "", false
		}
		root = first
	}
	return root, root != ""
}

// needed reports whether a file is read when the archive is opened.
func needed(name string) bool {
	switch name {
	case "archive_format", "archive_version", "byteorder", ".data/version", ".data/serialization_id", oldDefinition:
		return true
	}
	return strings.HasSuffix(name, ".json") &&
		(strings.HasPrefix(name, "models/") || strings.HasPrefix(name, aotInductorDir) ||
			strings.HasPrefix(name, weightsDir) || strings.HasPrefix(name, constantsDir))
}

// prefetch plans how what opening needs, and is not in the tail, is read:
// neighbours together, for over HTTP a read is a request.
func (z *zipFiles) prefetch() {
	var spans [][2]int64
	wanted := slices.Clone(z.dir.Files)
	slices.SortFunc(wanted, func(a, b *zipdir.Entry) int { return cmp.Compare(a.Offset, b.Offset) })
	for _, e := range wanted {
		if !needed(strings.TrimPrefix(e.Name, z.prefix)) || e.Offset >= z.dir.Tail() || e.End-e.Offset > mergeBytes {
			continue
		}
		end := min(e.End, z.dir.Tail())
		if k := len(spans) - 1; k >= 0 && e.Offset-spans[k][1] <= mergeGap && end-spans[k][0] <= mergeBytes {
			spans[k][1] = end
			continue
		}
		spans = append(spans, [2]int64{e.Offset, end})
	}
	z.r = &spanReader{r: z.r, spans: spans}
}

// spanReader holds one span of an archive in memory: that in which the last read
// began.
type spanReader struct {
	r     io.ReaderAt
	spans [][2]int64 // offset and end, in order
	off   int64
	b     []byte
}

// ReadAt implements io.ReaderAt over the whole archive.
func (s *spanReader) ReadAt(p []byte, off int64) (int, error) {
	if off < s.off || off >= s.off+int64(len(s.b)) {
		i, found := slices.BinarySearchFunc(s.spans, off,
			func(span [2]int64, off int64) int { return cmp.Compare(span[0], off) })
		if !found {
			i--
		}
		if i < 0 || off >= s.spans[i][1] {
			return s.r.ReadAt(p, off)
		}
		b := make([]byte, s.spans[i][1]-s.spans[i][0])
		if n, err := s.r.ReadAt(b, s.spans[i][0]); n < len(b) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		s.off, s.b = s.spans[i][0], b
	}
	n := copy(p, s.b[off-s.off:])
	if n == len(p) {
		return n, nil
	}
	more, err := s.r.ReadAt(p[n:], off+int64(n))
	return n + more, err
}

// open opens a file's content. io.EOF comes only where its length and CRC are
// right.
func (z *zipFiles) open(name string) (io.Reader, error) {
	e := z.entry(name)
	data, err := e.Check(z.r)
	if err != nil {
		return nil, zipError(err)
	}
	source := &iox.Source{R: io.NewSectionReader(z.r, data, e.Packed)}
	var r io.Reader = bufio.NewReaderSize(source, int(min(max(e.Packed, 16), chunkBytes)))
	if e.Method == zipdir.Deflate {
		r = zipdir.Inflate(r)
	}
	name = errtext.Quote(e.Name)
	return &iox.Verifier{
		R: io.NopCloser(r), Size: e.Size, CRC32: e.CRC,
		Wrong: func(text string) error { return fmt.Errorf("%w: %s: %s", ErrFormat, name, text) },
		Broken: func(err error) error {
			if source.Err != nil {
				return fmt.Errorf("%w: %w", errSource, source.Err)
			}
			return fmt.Errorf("%w: %s: can't be decompressed: %w", ErrFormat, name, err)
		},
	}, nil
}

// word reads a file of one word, "" where there is none.
func (z *zipFiles) word(name string) (string, error) {
	e := z.entry(name)
	switch {
	case e == nil:
		return "", nil
	case e.Size > maxWord:
		return "", fmt.Errorf("%w: %s: is %d bytes long, and a word has at most %d",
			ErrFormat, errtext.Quote(e.Name), e.Size, maxWord)
	}
	r, err := z.open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(bytes.TrimSpace(b)), err
}

// document reads a JSON file that exists by f.
func (z *zipFiles) document(name string, f func(*jsonstream.Reader) error) error {
	e := z.entry(name)
	if z.json += e.Size; z.json > MaxJSONBytes {
		return errtext.Limit(ErrFormat, "its documents have more than %d bytes", MaxJSONBytes)
	}
	in, err := z.open(name)
	if err != nil {
		return err
	}
	r := jsonstream.New(in)
	r.Python = true
	err = f(r)
	if err == nil {
		err = r.End()
	}
	if source := r.SourceError(); source != nil {
		return source
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return inFile(name, err)
	}
	return nil
}
