package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

var aState = state{
	Registry: "registry.example", Repository: "org/m", Digest: testDigest, Size: 5 << 20,
	Location: "https://registry.example/v2/org/m/blobs/uploads/1?_state=a%3D&b=c", MinChunk: 5,
	Time:   time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
	Hashes: []savedHash{{1 << 20, []byte("state")}, {2 << 20, []byte("another")}},
}

func TestStateRoundTrip(t *testing.T) {
	got, ok := decodeState(append(aState.encode(), "   "...))
	want := aState
	want.Version, want.Time = stateVersion, time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
	long := aState
	long.Location += strings.Repeat("x", maxStateBytes)
	if b := long.encode(); b != nil {
		t.Errorf("got %d bytes", len(b))
	}
}

// TestDecodeState: what this package has not written is nothing.
func TestDecodeState(t *testing.T) {
	good := string(aState.encode())
	edit := func(f func(*state)) string {
		s := aState
		f(&s)
		return string(s.encode())
	}
	replace := func(was, is string) string {
		if !strings.Contains(good, was) {
			t.Fatalf("%s holds no %s", good, was)
		}
		return strings.Replace(good, was, is, 1)
	}
	for name, s := range map[string]string{
		"nothing":            "",
		"blanks":             "   ",
		"garbage":            "\x00\xff{",
		"null":               "null",
		"a list":             "[" + good + "]",
		"half of it":         good[:len(good)/2],
		"torn":               good + good[len(good)-5:],
		"twice":              good + good,
		"another version":    replace(`"version":1`, `"version":2`),
		"a field more":       replace(`{`, `{"x":1,`),
		"a field twice":      replace(`{`, `{"version":1,`),
		"another spelling":   replace(`"location"`, `"Location"`),
		"a field less":       replace(`"minChunk":5,`, `"minChunk":0,`),
		"a newline":          good + "\n",
		"white space":        replace(`:1,`, `: 1,`),
		"a number as text":   replace(`"size":5242880`, `"size":"5242880"`),
		"a fraction":         replace(`"size":5242880`, `"size":5242880.0`),
		"an overflow":        replace(`"size":5242880`, `"size":52428800000000000000`),
		"a bad digest":       edit(func(s *state) { s.Digest = "sha256:../../x" }),
		"another algorithm":  edit(func(s *state) { s.Digest = "md5:x" }),
		"a negative size":    edit(func(s *state) { s.Size = -1 }),
		"a small size":       edit(func(s *state) { s.Size = minStateSize - 1 }),
		"a negative chunk":   edit(func(s *state) { s.MinChunk = -1 }),
		"no location":        edit(func(s *state) { s.Location = "" }),
		"a relative one":     edit(func(s *state) { s.Location = "/v2/org/m/blobs/uploads/1" }),
		"an unreadable one":  edit(func(s *state) { s.Location = "http://[::1" }),
		"one with user info": edit(func(s *state) { s.Location = "https://u:p@registry.example/" }),
		"a fragment":         edit(func(s *state) { s.Location = "https://registry.example/#x" }),
		"a header more":      edit(func(s *state) { s.Location = "https://registry.example/\r\nX: y" }),
		"other letters":      edit(func(s *state) { s.Location = "https://registry.example/é" }),
		"too long":           good + strings.Repeat(" ", 10) + strings.Repeat("x", maxStateBytes),
		"deep":               strings.Repeat("[", 10_000),
	} {
		if got, ok := decodeState([]byte(s)); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestStateFits(t *testing.T) {
	now := aState.Time.Add(maxStateAge - time.Second)
	if !aState.fits(aState, now) {
		t.Error("it fits itself")
	}
	for name, f := range map[string]func(*state, *time.Time){
		"registry":   func(s *state, _ *time.Time) { s.Registry = "registry.example:443" },
		"repository": func(s *state, _ *time.Time) { s.Repository = "org/n" },
		"digest":     func(s *state, _ *time.Time) { s.Digest = describeBytes([]byte("x")).Digest },
		"size":       func(s *state, _ *time.Time) { s.Size++ },
		"too old":    func(_ *state, now *time.Time) { *now = now.Add(time.Second) },
		"the future": func(_ *state, now *time.Time) { *now = now.Add(-3 * maxStateAge) },
	} {
		other, at := aState, now
		f(&other, &at)
		if aState.fits(other, at) {
			t.Errorf("%s: it fits", name)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add(aState.encode())
	f.Add(append(aState.encode(), ' '))
	f.Add([]byte(`{"version":1,"registry":"","location":"https://h/"}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := decodeState(b)
		if !ok {
			if !reflect.DeepEqual(s, state{}) {
				t.Fatalf("got %+v with nothing", s)
			}
			return
		}
		if again := s.encode(); !bytes.Equal(again, bytes.TrimRight(b, " ")) {
			t.Fatalf("%q becomes %q", b, again)
		}
		if layout.CheckDigest(s.Digest) != nil || s.Size < minStateSize || strings.ContainsAny(s.Location, " \r\n\x00") {
			t.Fatalf("got %+v", s)
		}
	})
}

// TestHostileStateFiles: whatever lies where a state would be, the blob arrives,
// nothing is sent to another host, and the next push has nothing to do with it.
func TestHostileStateFiles(t *testing.T) {
	blob := random(1, 5<<20)
	desc := describeBytes(blob)
	other := registrytest.New(t, registrytest.Config{})
	write := func(b []byte) func(*testing.T, string, state) {
		return func(t *testing.T, name string, _ state) {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(f func(*state)) func(*testing.T, string, state) {
		return func(t *testing.T, name string, s state) {
			f(&s)
			write(s.encode())(t, name, s)
		}
	}
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, name string, s state)
		keeps bool // the file is not ours to remove
	}{
		"empty":              {spoil: write(nil)},
		"garbage":            {spoil: write(bytes.Repeat([]byte{0xff}, 1000))},
		"large":              {spoil: write(bytes.Repeat([]byte{' '}, 50<<20))},
		"another host":       {spoil: edit(func(s *state) { s.Location = other.URL + "/v2/org/m/blobs/uploads/1" })},
		"another name":       {spoil: edit(func(s *state) { s.Location = strings.Replace(s.Location, "127.0.0.1", "localhost", 1) })},
		"another scheme":     {spoil: edit(func(s *state) { s.Location = "file:///etc/passwd" })},
		"another path":       {spoil: edit(func(s *state) { s.Location, _, _ = strings.Cut(s.Location, "org/m/") })},
		"https":              {spoil: edit(func(s *state) { s.Location = strings.Replace(s.Location, "http:", "https:", 1) })},
		"another repository": {spoil: edit(func(s *state) { s.Location = strings.Replace(s.Location, "/org/m/", "/org/victim/", 1) })},
		"a manifest":         {spoil: edit(func(s *state) { s.Location = strings.Replace(s.Location, "/blobs/uploads/", "/manifests/", 1) })},
		"a way out": {spoil: edit(func(s *state) {
			s.Location = strings.Replace(s.Location, "/uploads/", "/uploads/../../../victim/blobs/uploads/", 1)
		})},
		"a way out, encoded": {spoil: edit(func(s *state) {
			s.Location = strings.Replace(s.Location, "/uploads/", "/uploads/%2e%2e/%2e%2e/manifests/", 1)
		})},
		"another upload":   {spoil: edit(func(s *state) { s.Digest = testDigest })},
		"another registry": {spoil: edit(func(s *state) { s.Registry = "other.example" })},
		"old":              {spoil: edit(func(s *state) { s.Time = s.Time.Add(-2 * maxStateAge) })},
		"of tomorrow":      {spoil: edit(func(s *state) { s.Time = s.Time.Add(2 * maxStateAge) })},
		"a folder": {keeps: true, spoil: func(t *testing.T, name string, _ state) {
			if err := os.Mkdir(name, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		"a hard link": {keeps: true, spoil: func(t *testing.T, name string, s state) {
			write(s.encode())(t, name+"x", s)
			if err := os.Link(name+"x", name); err != nil {
				t.Fatal(err)
			}
		}},
		"open to others": {keeps: true, spoil: func(t *testing.T, name string, s state) {
			write(s.encode())(t, name, s)
			if err := os.Chmod(name, 0o666); err != nil {
				t.Fatal(err)
			}
		}},
		"a link": {keeps: true, spoil: func(t *testing.T, name string, _ state) {
			if err := os.Symlink(filepath.Join(t.TempDir(), "victim"), name); err != nil {
				testenv.NotChecked(t, "an upload's record that is a symlink: %v", err)
			}
		}},
		"a link to a state": {keeps: true, spoil: func(t *testing.T, name string, s state) {
			write(s.encode())(t, name+"x", s)
			if err := os.Symlink(name+"x", name); err != nil {
				testenv.NotChecked(t, "an upload's record that is a symlink: %v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			opts := Options{StateDir: t.TempDir()}
			file := halfway(t, reg, opts, blob)
			b, err := os.ReadFile(file)
			var s state
			if err != nil || json.Unmarshal(b, &s) != nil || os.Remove(file) != nil {
				t.Fatalf("got %q, %v", b, err)
			}
			tt.spoil(t, file, s)
			reg.Forget()
			if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(desc, opener(blob)), layout.Watch{}); err != nil {
				t.Fatal(err)
			}
			if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, blob) {
				t.Error("the registry has other bytes than were pushed")
			}
			for _, r := range reg.Requests() {
				if strings.Contains(r.Path, "victim") || strings.Contains(r.Path, "manifests") || r.Method == http.MethodDelete {
					t.Errorf("%s %s was asked for", r.Method, r.Path)
				}
			}
			if in, _ := reg.Bytes("PUT", uploads); in != desc.Size {
				t.Errorf("%d bytes came in, want all %d", in, desc.Size)
			}
			if _, err := os.Lstat(file); (err == nil) != tt.keeps {
				t.Errorf("the file: %v", err)
			}
		})
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

// TestStateFolderThatCannotBe: an upload that can't be remembered is an upload.
func TestStateFolderThatCannotBe(t *testing.T) {
	blob := random(1, 5<<20)
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"a file": file, "under a file": filepath.Join(file, "x"), "no name": "\x00"} {
		reg := registrytest.New(t, registrytest.Config{})
		if err := dial(t, reg, "org/m", Options{StateDir: dir}).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSweep: what nobody went on with is removed, what is in use or young stays.
func TestSweep(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	dir := t.TempDir()
	opts := Options{StateDir: dir}
	old := halfway(t, reg, opts, random(1, 5<<20))
	age := func(name string) {
		at := time.Now().Add(-maxStateAge - time.Hour)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	age(old)
	name := func(c string) string { return filepath.Join(filepath.Dir(old), strings.Repeat(c, 64)) }
	young, busy := name("a"), name("b")
	for _, name := range []string{young, busy} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	age(busy)
	// What a user keeps in a folder of that name is not ours.
	theirs := []string{filepath.Join(filepath.Dir(old), "thesis.txt"), name("c"), name("d"), name("e"), name("f")}
	for i, name := range theirs {
		if err := os.WriteFile(name, []byte("their own"), []os.FileMode{0o600, 0o600, 0o644, 0o600, 0o600}[i]); err != nil {
			t.Fatal(err)
		}
		age(name)
	}
	if err := errors.Join(os.Link(theirs[3], theirs[3]+"x"), os.Remove(theirs[4]), os.Symlink("thesis.txt", theirs[4])); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Dir(old))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	held, err := lock(root, filepath.Base(busy))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	blob := random(2, 5<<20)
	if err := dial(t, reg, "org/m", opts).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{old: false, young: true, busy: runtime.GOOS != "plan9"} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
	}
	for _, name := range theirs {
		if b, err := os.ReadFile(name); err != nil || string(b) != "their own" {
			t.Errorf("%s: got %q, %v", filepath.Base(name), b, err)
		}
	}
}

// TestASymlinkForAFolder: what a symlink in the place of the folder leads to stays
// as it is.
func TestASymlinkForAFolder(t *testing.T) {
	dir, theirs := t.TempDir(), t.TempDir()
	name := filepath.Join(theirs, strings.Repeat("a", 64))
	old := time.Now().Add(-2 * maxStateAge)
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, old, old), os.Chmod(theirs, 0o755), os.Symlink(theirs, filepath.Join(dir, "uploads"))); err != nil {
		t.Fatal(err)
	}
	blob := random(2, 5<<20)
	reg := registrytest.New(t, registrytest.Config{})
	if err := dial(t, reg, "org/m", Options{StateDir: dir}).Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(theirs)
	if _, gone := os.Stat(name); err != nil || gone != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v, %v", fi.Mode(), err, gone)
	}
}

// TestSaveIsOneState: a longer state is never seen behind a shorter one.
func TestSaveIsOneState(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{StateDir: t.TempDir()})
	desc := describeBytes(random(1, 5<<20))
	rec, remembered := repo.openRecord(desc)
	if rec == nil || remembered != nil {
		t.Fatal("got no record, or one that remembers something")
	}
	at := "http://h/v2/org/m/blobs/uploads/"
	for _, location := range []string{at + "a", at + strings.Repeat("b", 5000), at + "c", "", at + "d"} {
		rec.save(session{location: location})
		b, err := os.ReadFile(files(t, repo.client.opts.StateDir)[0])
		if err != nil {
			t.Fatal(err)
		}
		s, ok := decodeState(b)
		if ok != (location != "") || ok && s.Location != location {
			t.Errorf("got %q, %v, want %q", s.Location, ok, location)
		}
	}
	if again, _ := repo.openRecord(desc); again != nil {
		t.Error("the record was had twice")
	}
	rec.close()
	again, s := repo.openRecord(desc)
	if again == nil || s == nil || s.Location != at+"d" {
		t.Fatalf("got %v", s)
	}
	defer again.close()
	var none *record
	none.save(session{location: "x"})
	none.clear()
	none.close()
	if none.keeps() {
		t.Error("no record keeps something")
	}
}
