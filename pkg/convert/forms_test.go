package convert

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// zipOf writes the carton of kindsOfMembers as other programs do: in some order,
// with some method and date. Members whose hash is in links are left out.
func zipOf(t *testing.T, method uint16, backwards bool, links *carton.Links) carton.Source {
	t.Helper()
	files, symlinks := kindsOfMembers()
	files[carton.ManifestName] = kinds().Manifest().Bytes()
	if links != nil {
		files[carton.LinksName] = links.Marshal()
	}
	names := slices.Concat(sortedKeys(files), sortedKeys(symlinks))
	if backwards {
		slices.Reverse(names)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, name := range names {
		h := &zip.FileHeader{Name: name, Method: method, Modified: time.Unix(1500000000+int64(i)*86400, 0)}
		h.SetMode(0o600)
		data := files[name]
		if target, ok := symlinks[name]; ok {
			h.Method = zip.Store
			h.SetMode(0o777 | os.ModeSymlink)
			data = []byte(target)
		} else if links != nil && links.URLs[cartontest.Bytes(data).Hash()] != nil && len(links.URLs) < 3 {
			continue
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := carton.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// folderOf unpacks the carton with odd modes and times.
func folderOf(t *testing.T) carton.Source {
	t.Helper()
	dir := t.TempDir()
	files, symlinks := kindsOfMembers()
	files[carton.ManifestName] = kinds().Manifest().Bytes()
	for name, data := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(name, data, 0o400)
		if err != nil && runtime.GOOS == "windows" && strings.ContainsAny(filepath.Base(name), `<>`) {
			testenv.NotChecked(t, "no file of this system is called %s", filepath.Base(name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range symlinks {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		testenv.Symlink(t, target, name)
	}
	src, err := carton.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// fetched is a host that serves the carton's members by their hash.
type fetched struct{ sizes bool }

func (f fetched) content(link links.Link) (cartontest.Bytes, error) {
	files, _ := kindsOfMembers()
	for _, data := range files {
		if b := cartontest.Bytes(data); b.Hash() == link.Hash {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%s: not here", link.URL)
}

func (f fetched) Size(_ context.Context, link links.Link) (int64, error) {
	b, err := f.content(link)
	if !f.sizes {
		return -1, err
	}
	return b.Size(), err
}

func (f fetched) Open(_ context.Context, link links.Link, off, n int64) (io.ReadCloser, error) {
	b, err := f.content(link)
	if err != nil {
		return nil, err
	}
	b = b[off:]
	if n >= 0 {
		b = b[:n]
	}
	return io.NopCloser(b.Open()), nil
}

// linksOf lists members of the carton.
func linksOf(names ...string) *carton.Links {
	files, _ := kindsOfMembers()
	links := &carton.Links{URLs: map[string][]string{}}
	for _, name := range names {
		links.URLs[cartontest.Bytes(files[name]).Hash()] = []string{"https://example.com/" + filepath.Base(name)}
	}
	return links
}

// One carton has one digest a set of options, whatever its form.
func TestOneDigestWhateverTheForm(t *testing.T) {
	thin := linksOf("model/weights-1.bin", "model/weights-2.bin")
	relinked := linksOf("model/weights-1.bin", "model/weights-2.bin", "model/config.json")
	relinked.URLs[strings.Repeat("0", 64)] = []string{"https://example.com/nothing"}
	forms := map[string]func(t *testing.T) carton.Source{
		"stored zip":    func(t *testing.T) carton.Source { return zipOf(t, zip.Store, false, nil) },
		"deflated zip":  func(t *testing.T) carton.Source { return zipOf(t, zip.Deflate, false, nil) },
		"backwards zip": func(t *testing.T) carton.Source { return zipOf(t, zip.Deflate, true, nil) },
		"relinked zip":  func(t *testing.T) carton.Source { return zipOf(t, zip.Store, false, relinked) },
		"folder":        folderOf,
		"thin zip": func(t *testing.T) carton.Source {
			return links.Resolve(zipOf(t, zip.Deflate, false, thin), fetched{sizes: true})
		},
		"thin zip, sizes not told": func(t *testing.T) carton.Source {
			return links.Resolve(zipOf(t, zip.Deflate, false, thin), fetched{})
		},
		"artifact": func(t *testing.T) carton.Source {
			s, desc, _ := pushed(t, kinds(), Options{Layers: FormTar, Compress: CompressGzip, BundleBelow: 3500})
			return opened(t, s, desc, OpenOptions{})
		},
	}
	golden := readGolden(t, filepath.Join("testdata", "golden.txt"))
	for form, open := range forms {
		t.Run(form, func(t *testing.T) {
			src := open(t)
			defer src.Close()
			for _, mode := range []string{"cnai", "cncf layers=tar compress=zstd bundle-below=100"} {
				if got := digestsOf(t, src, modes()[mode]); got != golden[mode] {
					t.Errorf("%s: got\n%s\nwant\n%s", mode, got, golden[mode])
				}
			}
		})
	}
}

// Nothing of the process reaches a digest: time zone, number of processors. (The
// umask reaches none because nothing is written.)
func TestOneDigestWhateverTheProcess(t *testing.T) {
	local, procs := time.Local, runtime.GOMAXPROCS(0)
	defer func() { time.Local = local; runtime.GOMAXPROCS(procs) }()
	golden := readGolden(t, filepath.Join("testdata", "golden.txt"))
	for _, n := range []int{1, 7} {
		time.Local = time.FixedZone("", n*3600)
		runtime.GOMAXPROCS(n)
		for _, mode := range []string{"cnai created", "cnai layers=raw compress=zstd bundle-below=100", "cnai layers=raw compress=gzip bundle-below=100"} {
			if got := digestsOf(t, kinds(), modes()[mode]); got != golden[mode] {
				t.Errorf("%s with %d processors: got\n%s\nwant\n%s", mode, n, got, golden[mode])
			}
		}
	}
}
