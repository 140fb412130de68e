package layout_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tarFile is an entry of a tar.
type tarFile struct {
	name, text string
	kind       byte // 0 is a file
}

// tarOf writes entries as they come, with headers of another program's kind.
func tarOf(t *testing.T, entries ...tarFile) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: e.kind, Name: e.name, Size: int64(len(e.text)), Mode: 0o640, Uid: 1000, Uname: "somebody", ModTime: time.Unix(1, 5),
			Format: tar.FormatPAX,
		}
		switch e.kind {
		case tar.TypeDir:
			h.Mode = 0o755
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname, h.Size = "blobs/other", 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folderEntries are the files of an image layout, as tar -c makes them of a folder.
func folderEntries(t *testing.T, dir string) []tarFile {
	t.Helper()
	list := []tarFile{{"./", "", tar.TypeDir}, {"./blobs/", "", tar.TypeDir}, {"./blobs/sha256/", "", tar.TypeDir}}
	for _, name := range files(t, dir) {
		if strings.Contains(name, ".partial") { // of a push under way
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, tarFile{"./" + name, string(b), tar.TypeReg})
	}
	return list
}

func write(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.oci.tar")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// asArchive is an image-layout folder that is read through a tar of it, made anew
// for every question.
type asArchive struct {
	*layout.Dir
	t *testing.T
}

func (a asArchive) archive() layout.Store {
	list := folderEntries(a.t, a.Path())
	if !slices.ContainsFunc(list, func(f tarFile) bool { return f.name == "./oci-layout" }) {
		return a.Dir // there is nothing yet
	}
	read, err := layout.OpenArchive(write(a.t, tarOf(a.t, list...)))
	if err != nil {
		a.t.Fatal(err)
	}
	return read
}

func (a asArchive) Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error) {
	return a.archive().Resolve(ctx, ref)
}

func (a asArchive) ResolveManifest(ctx context.Context, ref string) (ocispec.Descriptor, []byte, error) {
	return a.archive().ResolveManifest(ctx, ref)
}

func (a asArchive) FetchManifest(ctx context.Context, desc ocispec.Descriptor) ([]byte, error) {
	return a.archive().FetchManifest(ctx, desc)
}

func (a asArchive) OpenRange(ctx context.Context, desc ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	return a.archive().OpenRange(ctx, desc, off, n)
}

func (a asArchive) Tags(ctx context.Context) iter.Seq2[string, error] { return a.archive().Tags(ctx) }

func (a asArchive) Referrers(ctx context.Context, subject ocispec.Descriptor, artifactType string) ([]ocispec.Descriptor, error) {
	return a.archive().Referrers(ctx, subject, artifactType)
}

func (a asArchive) Stat(ctx context.Context, dgst digest.Digest) (int64, error) {
	return a.archive().Stat(ctx, dgst)
}

func (a asArchive) Has(ctx context.Context, desc ocispec.Descriptor, moved func(int64)) (bool, error) {
	return a.archive().Has(ctx, desc, moved)
}

// An archive is read as any other store is.
func TestAnArchiveIsAStoreThatIsRead(t *testing.T) {
	storetest.TestStore(t, func() layout.Store { return asArchive{createDir(t, filepath.Join(t.TempDir(), "layout")), t} })
}

func TestWhatIsNoArchive(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	good := folderEntries(t, d.Path())
	whole := tarOf(t, good...)
	without := func(name string) []byte {
		var list []tarFile
		for _, e := range good {
			if !strings.HasSuffix(e.name, name) {
				list = append(list, e)
			}
		}
		return tarOf(t, list...)
	}
	with := func(e ...tarFile) []byte { return tarOf(t, append(good[:len(good):len(good)], e...)...) }
	gzipped := func() []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(whole)
		w.Close()
		return b.Bytes()
	}
	blob := "blobs/sha256/" + a.Config.Digest.Encoded()
	for name, c := range map[string]struct {
		content    []byte
		text, hint string
	}{
		"empty":                    {nil, "not a whole one", ""},
		"text":                     {[]byte(strings.Repeat("no tar ", 1000)), "not a whole one", ""},
		"a zip":                    {[]byte("PK\x03\x04" + strings.Repeat("x", 2000)), "not a whole one", ""},
		"gzip":                     {gzipped(), "is compressed with gzip", "gunzip -k"},
		"zstd":                     {[]byte("\x28\xb5\x2f\xfd1234567890"), "is compressed with zstd", "unzstd -k"},
		"cut in a header":          {whole[:700], "is truncated", ""},
		"cut in a blob":            {whole[:len(whole)-4000], "is truncated", ""},
		"without its end":          {whole[:len(whole)-1024], "is truncated", ""},
		"zeros":                    {make([]byte, 1<<20), "holds no oci-layout", ""},
		"half-written by carton":   {append(make([]byte, 2048), whole[2048:]...), "has data behind its end", ""},
		"data behind the end":      {append(bytes.Clone(whole), "more"...), "has data behind its end", ""},
		"no oci-layout":            {without("oci-layout"), "holds no oci-layout", ""},
		"no index.json":            {without("index.json"), "holds no index.json", ""},
		"another version":          {tarOf(t, append([]tarFile{{"oci-layout", `{"imageLayoutVersion":"2.0.0"}`, 0}}, good[:len(good)-1]...)...), "got the version 2.0.0", ""},
		"a docker-archive":         {tarOf(t, tarFile{"manifest.json", "[]", 0}, tarFile{"abc/layer.tar", "x", 0}), "is a docker-archive", "skopeo copy"},
		"a blob twice":             {with(tarFile{blob, "x", 0}), "twice", ""},
		"a blob twice, written ./": {with(tarFile{"././" + blob, "x", 0}), "twice", ""},
		"an index twice":           {with(tarFile{"index.json", "{}", 0}), "twice", ""},
		"a symlink":                {with(tarFile{"blobs/sha256/" + strings.Repeat("0", 64), "", tar.TypeSymlink}), "holds a symlink", ""},
		"a hard link":              {with(tarFile{"blobs/sha256/" + strings.Repeat("0", 64), "", tar.TypeLink}), "hard link", ""},
		"a pipe":                   {with(tarFile{"blobs/sha256/" + strings.Repeat("0", 64), "", tar.TypeFifo}), "FIFO", ""},
		"a name above":             {with(tarFile{"../index.json", "{}", 0}), "which no image layout does", ""},
		"an absolute name":         {with(tarFile{"/index.json", "{}", 0}), "which no image layout does", ""},
		"another file":             {with(tarFile{"model.bin", "x", 0}), "which no image layout does", ""},
		"a blob without a digest":  {with(tarFile{"blobs/sha256/abc", "x", 0}), "which no image layout does", ""},
		"a digest in capitals":     {with(tarFile{"blobs/sha256/" + strings.Repeat("A", 64), "x", 0}), "which no image layout does", ""},
		"an index that is none":    {tarOf(t, tarFile{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`, 0}, tarFile{"index.json", "x", 0}), "not JSON", ""},
		"an index that is too large": {
			tarOf(t, tarFile{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`, 0}, tarFile{"index.json", strings.Repeat(" ", layout.MaxManifestBytes+1), 0}),
			"is over", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := layout.OpenArchive(write(t, c.content))
			if !errors.Is(err, layout.ErrFormat) && !errors.Is(err, layout.ErrLimit) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want ErrFormat saying %q", err, c.text)
			}
			if got := hint.Of(err); c.hint != "" && (len(got) != 1 || !strings.Contains(got[0].Text(nil), c.hint)) {
				t.Errorf("got the hints %v, want %q", got, c.hint)
			}
		})
	}
}

// What docker save and others put beside an image layout is no harm.
func TestAnArchiveOfAnotherProgram(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	list := append(folderEntries(t, d.Path()),
		tarFile{"manifest.json", "[]", 0}, tarFile{"repositories", "{}", 0}, tarFile{"blobs/sha512/" + strings.Repeat("a", 128), "x", 0})
	read, err := layout.OpenArchive(write(t, tarOf(t, list...)))
	if err != nil {
		t.Fatal(err)
	}
	if desc, err := read.Resolve(t.Context(), "v1"); err != nil || desc.Digest != a.Digest {
		t.Errorf("got %v, %v", desc, err)
	}
}

// A blob that was damaged in the archive is found out, and one that another file
// took the place of is not mixed with it.
func TestADamagedArchive(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	b := tarOf(t, folderEntries(t, d.Path())...)
	content, err := layout.ReadBlob(t.Context(), d, a.Layers[0].Descriptor, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, content)
	b[at] ^= 1
	name := write(t, b)
	read, err := layout.OpenArchive(name)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := read.Has(t.Context(), a.Layers[0].Descriptor, nil); there || err != nil {
		t.Errorf("got %v, %v: it is damaged", there, err)
	}
	if _, err := layout.ReadBlob(t.Context(), read, a.Layers[0].Descriptor, 1<<20); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("got %v, want ErrDigest", err)
	}
	if err := os.WriteFile(name, b[:len(b)-512], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.ReadBlob(t.Context(), read, a.Layers[1].Descriptor, 1<<20); !errors.Is(err, layout.ErrDigest) || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("got %v, want that it was changed", err)
	}
}

// An archive is not changed.
func TestAnArchiveIsNotChanged(t *testing.T) {
	d, a := pushed(t, 1, "v1")
	name := write(t, tarOf(t, folderEntries(t, d.Path())...))
	read, err := layout.OpenArchive(name)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(name)
	if _, err := layout.Push(t.Context(), read, storetest.Artifact(t, 2), layout.PushOptions{Tags: []string{"v2"}}); !errors.Is(err, layout.ErrUnsupported) || len(hint.Of(err)) != 1 {
		t.Errorf("push: got %v, want ErrUnsupported with a hint", err)
	}
	if err := read.PutManifest(t.Context(), a.Descriptor, a.Manifest, layout.PutOptions{Tags: []string{"v2"}}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("a tag: got %v, want ErrUnsupported", err)
	}
	if err := read.Delete(t.Context(), "v1", layout.DeleteOptions{}); !errors.Is(err, layout.ErrUnsupported) {
		t.Errorf("delete: got %v, want ErrUnsupported", err)
	}
	if after, _ := os.ReadFile(name); !bytes.Equal(before, after) {
		t.Error("it has changed")
	}
}

// FuzzArchive wants what is accepted to hold what its headers say, and nothing that
// archive/tar would see otherwise.
func FuzzArchive(f *testing.F) {
	seed := func(entries ...tarFile) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			w.WriteHeader(&tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: 0o644})
			w.Write([]byte(e.text))
		}
		w.Close()
		f.Add(b.Bytes())
	}
	blob := "blobs/sha256/" + digest.FromString("x").Encoded()
	seed(tarFile{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`, 0}, tarFile{"index.json", `{"schemaVersion":2,"manifests":[]}`, 0}, tarFile{blob, "x", 0})
	seed(tarFile{"blobs/", "", tar.TypeDir}, tarFile{"./manifest.json", "[]", 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, withSums(b)} {
			a, err := layout.OpenArchive(write(t, b))
			if err != nil {
				if !errors.Is(err, layout.ErrFormat) && !errors.Is(err, layout.ErrLimit) {
					t.Errorf("got %v, want ErrFormat or ErrLimit", err)
				}
				continue
			}
			r := tar.NewReader(bytes.NewReader(b))
			for {
				h, err := r.Next()
				if err != nil {
					break
				}
				digits, ok := strings.CutPrefix(strings.TrimPrefix(h.Name, "./"), "blobs/sha256/")
				if !ok || h.Typeflag == tar.TypeDir {
					continue
				}
				want, _ := io.ReadAll(r)
				desc := ocispec.Descriptor{MediaType: "x/y", Digest: digest.NewDigestFromEncoded("sha256", digits), Size: h.Size}
				got, err := layout.ReadBlob(t.Context(), a, desc, 1<<20)
				if err == nil && !bytes.Equal(got, want) || err != nil && !errors.Is(err, layout.ErrDigest) {
					t.Errorf("%s: got %q, %v, want %q", h.Name, got, err, want)
				}
			}
		}
	})
}
