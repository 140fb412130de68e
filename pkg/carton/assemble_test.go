package carton_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/google/go-cmp/cmp"
)

// onlyFile wants a folder to hold one file, or nothing at all, and returns the
// file's content.
func onlyFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if name == "" {
		if len(got) > 0 {
			t.Errorf("left behind: %q", got)
		}
		return nil
	}
	if !slices.Equal(got, []string{name}) {
		t.Fatalf("the folder holds %q, want only %s", got, name)
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAssembleWritesThePlan(t *testing.T) {
	bundled := []string{"model/config.json", "model/.hidden/a=b", "misc/z"}
	for name, c := range map[string]struct {
		opts carton.AssembleOptions
		src  *cartontest.Source
	}{
		"default":            {carton.AssembleOptions{}, cartontest.New(planFiles(), planLinks())},
		"one at a time":      {carton.AssembleOptions{Concurrency: 1}, cartontest.New(planFiles(), planLinks())},
		"many at once":       {carton.AssembleOptions{Concurrency: 100}, cartontest.New(planFiles(), planLinks())},
		"from bundles":       {carton.AssembleOptions{}, cartontest.New(planFiles(), planLinks(), cartontest.WithBundle(1, bundled...))},
		"one byte at once":   {carton.AssembleOptions{}, cartontest.New(planFiles(), planLinks(), cartontest.WithOpen(slowly))},
		"nothing to replace": {carton.AssembleOptions{Replace: true}, cartontest.New(planFiles(), planLinks())},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := carton.Assemble(t.Context(), filepath.Join(dir, "m.carton"), c.src, c.opts); err != nil {
				t.Fatal(err)
			}
			got := onlyFile(t, dir, "m.carton")
			if want := zipOfPlan(t, c.src, planned(t, c.src)); !bytes.Equal(got, want) {
				t.Errorf("the file is not what the plan says: %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

// slowly gives some bytes one by one, with empty reads in between, and the end
// together with the last.
func slowly(path string, _ int, r io.Reader) (io.Reader, error) {
	if !strings.HasSuffix(path, "json") {
		return r, nil
	}
	b, err := io.ReadAll(r)
	return &oneByOne{b: b}, err
}

type oneByOne struct {
	b    []byte
	skip bool
}

func (o *oneByOne) Read(p []byte) (int, error) {
	if o.skip = !o.skip; o.skip {
		return 0, nil
	}
	n := copy(p[:1], o.b)
	o.b = o.b[n:]
	if len(o.b) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func TestAssembleReadsEveryMemberOnce(t *testing.T) {
	src := cartontest.New(planFiles(), planLinks())
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	for p := range planFiles() {
		if got := src.Opens(p); got != 1 {
			t.Errorf("%s was opened %d times, want once", p, got)
		}
	}
	for p := range planLinks() {
		if got := src.Opens(p); got != 0 {
			t.Errorf("%s, a symlink, was opened %d times, want never", p, got)
		}
	}
	if got := src.Unclosed(); got != 0 {
		t.Errorf("%d readers were not closed", got)
	}
	if src.Closed() {
		t.Error("the source was closed: that is its owner's business")
	}
}

func TestAssembledCartonIsTheSource(t *testing.T) {
	src := cartontest.New(planFiles(), planLinks())
	name := filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), name, src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	sameCarton(t, name, src)
}

// sameCarton wants the carton at name to have src's MANIFEST, members and
// content.
func sameCarton(t *testing.T, name string, src carton.Source) {
	t.Helper()
	got, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if !bytes.Equal(got.Manifest().Bytes(), src.Manifest().Bytes()) {
		t.Error("MANIFEST has other bytes")
	}
	members, err := got.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range members {
		members[i].Place, members[i].Bundle, members[i].Ranged = want[i].Place, want[i].Bundle, want[i].Ranged
		if b := content(t, got, members[i].Path); !bytes.Equal(b, content(t, src, members[i].Path)) {
			t.Errorf("%s has other content", members[i].Path)
		}
	}
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestAssembleReadsBundlesInOrder(t *testing.T) {
	files := map[string][]byte{"model/z": []byte("z"), "model/big": make([]byte, 1<<20)}
	var first, second []string
	for _, c := range "abcdefgh" {
		first, second = append(first, "model/1"+string(c)), append(second, "model/2"+string(c))
	}
	for _, p := range append(slices.Clone(first), second...) {
		files[p] = []byte(p)
	}
	src := cartontest.New(files, nil, cartontest.WithBundle(1, first...), cartontest.WithBundle(2, second...))
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	only := func(prefix string) (list []string) {
		for _, p := range src.Opened() {
			if strings.HasPrefix(p, prefix) {
				list = append(list, p)
			}
		}
		return list
	}
	if diff := cmp.Diff(first, only("model/1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(second, only("model/2")); diff != "" {
		t.Error(diff)
	}

	all := []string{"carton.toml"}
	for p := range files {
		all = append(all, p)
	}
	src = cartontest.New(files, nil, cartontest.WithBundle(1, all...), cartontest.WithOpen(func(_ string, _ int, r io.Reader) (io.Reader, error) {
		time.Sleep(time.Millisecond) // others would open theirs
		return r, nil
	}))
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := src.MostOpen(); got != 1 {
		t.Errorf("%d members of one bundle were open at once, want 1", got)
	}

	src = cartontest.New(files, nil)
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	if got := src.Opened()[0]; got != "model/big" {
		t.Errorf("%s was read first, want the largest", got)
	}
}

func TestAssembleReadsSoManyAtOnce(t *testing.T) {
	const n = 3
	files := map[string][]byte{}
	for _, c := range "abcdefghijkl" {
		files["model/"+string(c)] = []byte{byte(c)}
	}
	var barrier sync.WaitGroup
	barrier.Add(n)
	var once [n]sync.Once
	var mu sync.Mutex
	opened := 0
	src := cartontest.New(files, nil, cartontest.WithOpen(func(_ string, _ int, r io.Reader) (io.Reader, error) {
		mu.Lock()
		i := opened
		opened++
		mu.Unlock()
		if i < n { // the first wait for each other
			once[i].Do(barrier.Done)
			barrier.Wait()
		}
		return r, nil
	}))
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{Concurrency: n}); err != nil {
		t.Fatal(err)
	}
	if got := src.MostOpen(); got != n {
		t.Errorf("%d members were open at once, want %d", got, n)
	}
}

func TestAssembleReplacesOnlyWhenToldTo(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m")
	if err := os.WriteFile(name, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	src := cartontest.New(nil, nil)
	err := carton.Assemble(t.Context(), name, src, carton.AssembleOptions{})
	if !errors.Is(err, carton.ErrExist) || len(hint.Of(err)) == 0 {
		t.Errorf("got %v, want ErrExist with a hint", err)
	}
	if got := onlyFile(t, dir, "m"); string(got) != "old" {
		t.Errorf("the old file holds %q", got)
	}
	if src.Opened() != nil {
		t.Errorf("members were read for nothing: %q", src.Opened())
	}
	if err := carton.Assemble(t.Context(), name, src, carton.AssembleOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	sameCarton(t, name, src)

	testenv.Symlink(t, "m", filepath.Join(dir, "link"))
	err = carton.Assemble(t.Context(), filepath.Join(dir, "link"), src, carton.AssembleOptions{Replace: true})
	if err == nil || !strings.Contains(err.Error(), "is a symlink") {
		t.Errorf("a symlink: got %v, want a refusal", err)
	}
}

// Memory is a buffer for each member that is read at once, whatever their sizes.
func TestAssembleNeedsLittleMemory(t *testing.T) {
	testenv.Heavy(t)
	src := cartontest.New(nil, nil, cartontest.WithContent("model/a", cartontest.Zeros(64<<20)),
		cartontest.WithContent("model/b", cartontest.Zeros(64<<20)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := carton.Assemble(t.Context(), filepath.Join(t.TempDir(), "m"), src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes were allocated, want less than 4 MiB", got)
	}
}
