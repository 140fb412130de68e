package client

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

// version is a model of 7 MiB of which 100,000 bytes differ from version to version.
func version(n byte) *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.safetensors": noise(1, 5*mib+77), "model/b.safetensors": noise(2, 2*mib), "model/c.bin": noise(10+n, 100_000),
		"model/config.json": []byte("{}"), "misc/readme.md": []byte("# x"),
	}, map[string]string{"model/again.safetensors": "b.safetensors"})
}

// unchanged is how many bytes the versions have in common, at least.
const unchanged = 7*mib + 77

func pushVersion(t *testing.T, r *registrytest.Registry, n byte, mapping convert.Options) string {
	t.Helper()
	ref := r.Host + "/org/m:" + string('0'+n)
	if _, err := fresh(impatient()).PushSource(t.Context(), version(n), "version", ref, PushOptions{Mapping: mapping}); err != nil {
		t.Fatal(err)
	}
	return ref
}

// wantVersion checks that a file or folder is the version, whole.
func wantVersion(t *testing.T, name string, n byte) {
	t.Helper()
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil || report.ModelHash != version(n).Manifest().ModelHash() {
		t.Fatalf("got %+v, %v, want version %d", report, err, n)
	}
	for _, f := range report.Findings {
		if errors.Is(f.Err, carton.ErrChecksum) {
			t.Error(f.Err)
		}
	}
}

// Of a newer version only what has changed travels, wherever the older one is.
func TestUnchangedMembersAreNotDownloaded(t *testing.T) {
	for form, mapping := range map[string]convert.Options{"raw layers": {}, "tar layers": {Layers: convert.FormTar}} {
		r := registrytest.New(t, registrytest.Config{})
		one, two := pushVersion(t, r, 1, mapping), pushVersion(t, r, 2, mapping)
		for name, pull := range map[string]func(t *testing.T, dir string) PullOptions{
			"over the file": func(t *testing.T, dir string) PullOptions {
				o := PullOptions{Output: filepath.Join(dir, "m.carton")}
				pulled(t, one, o)
				o.Force = true
				return o
			},
			"over the folder": func(t *testing.T, dir string) PullOptions {
				o := PullOptions{Unpack: filepath.Join(dir, "m")}
				pulled(t, one, o)
				o.Force = true
				return o
			},
			"over a choice": func(t *testing.T, dir string) PullOptions {
				o := PullOptions{Unpack: filepath.Join(dir, "m"), Folder: "model"}
				pulled(t, one, o)
				o.Force = true
				return o
			},
			"a file from a folder": func(t *testing.T, dir string) PullOptions {
				pulled(t, one, PullOptions{Unpack: filepath.Join(dir, "old")})
				return PullOptions{Output: filepath.Join(dir, "m.carton"), From: []string{filepath.Join(dir, "old")}}
			},
			"a folder from a file": func(t *testing.T, dir string) PullOptions {
				pulled(t, one, PullOptions{Output: filepath.Join(dir, "old.carton")})
				return PullOptions{Unpack: filepath.Join(dir, "m"), From: []string{filepath.Join(dir, "old.carton")}}
			},
			"from loose files": func(t *testing.T, dir string) PullOptions {
				pulled(t, one, PullOptions{Unpack: filepath.Join(dir, "old"), Folder: "model"})
				return PullOptions{Output: filepath.Join(dir, "m.carton"), From: []string{filepath.Join(dir, "old")}}
			},
			"from two": func(t *testing.T, dir string) PullOptions {
				for i, folder := range []string{"model", "misc"} {
					pulled(t, one, PullOptions{Unpack: filepath.Join(dir, string('a'+rune(i))), Folder: folder})
				}
				return PullOptions{
					Output: filepath.Join(dir, "m.carton"),
					From:   []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")},
				}
			},
		} {
			t.Run(form+"/"+name, func(t *testing.T) {
				opts := pull(t, t.TempDir())
				result := pulled(t, two, opts)
				if result.BytesReused < unchanged || result.BytesDownloaded > 200_000 {
					t.Errorf("%d bytes were reused and %d downloaded, want at least %d and little more than what has changed", result.BytesReused, result.BytesDownloaded, unchanged)
				}
				if opts.Folder == "" {
					wantVersion(t, result.Path, 2)
				}
				if len(result.NotReused) > 0 {
					t.Errorf("not reused: %q", result.NotReused)
				}
				opts.Force = false
				if again := pulled(t, two, opts); !again.AlreadyHere {
					t.Errorf("again: got %+v, want it to be here already", again)
				}
			})
		}
	}
}

func pulled(t *testing.T, ref string, opts PullOptions) *PullResult {
	t.Helper()
	result, err := fresh(impatient()).Pull(t.Context(), ref, opts)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// What is here is not believed: a damaged copy is downloaded, and that is said.
func TestDamagedCopiesAreDownloaded(t *testing.T) {
	for name, damage := range map[string]func(file string, b []byte, at int) error{
		"flipped bit": func(file string, b []byte, at int) error {
			b[at] ^= 1
			return os.WriteFile(file, b, 0o600)
		},
		"zeros": func(file string, b []byte, at int) error {
			clear(b[at : at+mib])
			return os.WriteFile(file, b, 0o600)
		},
	} {
		for form, mapping := range map[string]convert.Options{"raw layers": {}, "tar layers": {Layers: convert.FormTar}} {
			t.Run(name+"/"+form, func(t *testing.T) {
				r := registrytest.New(t, registrytest.Config{})
				one, two := pushVersion(t, r, 1, mapping), pushVersion(t, r, 2, mapping)
				opts := PullOptions{Output: filepath.Join(t.TempDir(), "m.carton")}
				pulled(t, one, opts)
				b, err := os.ReadFile(opts.Output)
				if err != nil {
					t.Fatal(err)
				}
				at := bytes.Index(b, noise(1, 100)) + 3*mib
				if err := damage(opts.Output, b, at); err != nil {
					t.Fatal(err)
				}
				opts.Force = true
				result := pulled(t, two, opts)
				wantVersion(t, opts.Output, 2)
				if result.BytesReused < 2*mib || result.BytesDownloaded < 5*mib {
					t.Errorf("got %+v, want what is damaged downloaded, and the rest reused", result)
				}
				if len(result.NotReused) != 1 || !strings.Contains(result.NotReused[0], "model/a.safetensors: got ") {
					t.Errorf("said %q, want which member was damaged", result.NotReused)
				}
			})
		}
	}
}

// The old file stays until the new one is whole, and what was copied is not lost.
func TestTheOldFileStaysUntilTheNewOneIsWhole(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	one, two := pushVersion(t, r, 1, convert.Options{}), pushVersion(t, r, 2, convert.Options{})
	opts := PullOptions{Output: filepath.Join(t.TempDir(), "m.carton")}
	pulled(t, one, opts)
	entry, _ := version(2).Manifest().Lookup("model/c.bin")
	r.Break(registrytest.Fault{Methods: "GET", Path: "blobs/sha256:" + entry.Hash, Times: -1, Effect: registrytest.Answer(403, "no")})
	opts.Force = true
	if _, err := fresh(impatient()).Pull(t.Context(), two, opts); err == nil {
		t.Fatal("got no error")
	}
	wantVersion(t, opts.Output, 1)
	r.Mend()
	result := pulled(t, two, opts)
	wantVersion(t, opts.Output, 2)
	if result.BytesReused+result.BytesResumed < unchanged || result.BytesDownloaded > 200_000 {
		t.Errorf("got %+v, want what has changed downloaded", result)
	}
}

// Members that a thin carton lacks can't be copied from it.
func TestNothingIsCopiedOfWhatIsLinked(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	one, two := pushVersion(t, r, 1, convert.Options{}), pushVersion(t, r, 2, convert.Options{})
	opts := PullOptions{Output: filepath.Join(t.TempDir(), "m.carton"), Thin: true}
	pulled(t, one, opts)
	opts.Force, opts.Thin = true, false
	if result := pulled(t, two, opts); result.BytesReused > 1000 || len(result.NotReused) > 0 {
		t.Errorf("got %+v, want the weights downloaded", result)
	}
	wantVersion(t, opts.Output, 2)
}

// What can't be read is no place to copy from, and is named.
func TestFromWhatIsNoCarton(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	ref := pushVersion(t, r, 1, convert.Options{})
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{text, filepath.Join(dir, "gone"), ref, "https://host/m.carton"} {
		opts := PullOptions{Output: filepath.Join(dir, "m.carton"), From: []string{from}}
		if _, err := fresh(impatient()).Pull(t.Context(), ref, opts); err == nil || !strings.Contains(err.Error(), "take from "+from) {
			t.Errorf("%s: got %v, want an error that names it", from, err)
		}
	}
	// What is replaced may be anything.
	pulled(t, ref, PullOptions{Output: text, Force: true})
	wantVersion(t, text, 1)
}
