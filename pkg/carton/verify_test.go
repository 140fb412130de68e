package carton_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/progress"
)

const emptyIndex = "tensor = []\n"

func TestVerifyReferenceCarton(t *testing.T) {
	src, err := carton.Open(testenv.Foreign(t, "carton/test.carton"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It is a test of the reference implementation, which does not compare its self
	// test with what it declares.
	sameFindings(t, "Verify", report.Findings, []string{
		`warning: carton.toml: self_test 1: the input "b": the tensor is string, and `,
		`warning: carton.toml: self_test 1: the output "y": the tensor has the shape `,
		`warning: carton.toml: example 1: the output "y": the tensor is int64, and `,
	})
	report.Findings = nil
	want := &carton.Report{ModelHash: testCartonHash, Members: 11, Bytes: 1_468_576}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyFindsEveryWrongMember(t *testing.T) {
	z := zipOf("model/a", "weights", "model/b", "more weights", "model/c", "right", carton.InfoName, minimalInfo, carton.IndexName, emptyIndex)
	z.file("model/a").packed[0]++
	z.file("model/b").both(func(h *rawHeader) { h.crc++ })
	z.file(carton.InfoName).packed[0]++
	b := z.bytes()
	src, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Verify", report.Findings, []string{
		"error: carton.toml: got sha256", // once, though it is read twice
		"error: model/a: got sha256",
		"error: model/b: got CRC",
	})
	if report.OK() {
		t.Error("got OK")
	}
	for _, f := range report.Findings {
		if !errors.Is(f.Err, carton.ErrChecksum) {
			t.Errorf("%v: got kind %v, want %v", f.Err, f.Err.Kind, carton.ErrChecksum)
		}
	}
}

func TestVerifyReadsWhatItIsTold(t *testing.T) {
	links := &carton.Links{URLs: map[string][]string{hashOf("linked"): {"https://example.com/x"}}}
	newSource := func() *cartontest.Source {
		return cartontest.New(map[string][]byte{
			"model/a": []byte("weights"), "model/far": []byte("linked"), carton.IndexName: []byte(emptyIndex),
		}, map[string]string{"model/l": "a"}, cartontest.WithLinks(links))
	}
	all := []string{"carton.toml", "model/a", "model/far", "model/l", "tensor_data/index.toml"}

	src := newSource()
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || len(report.Findings) != 0 || !slices.Equal(report.Unread, []string{"model/far"}) {
		t.Errorf("got %+v, want model/far unread", report)
	}
	if src.Opens("model/l") != 0 || src.Opens("model/a") != 1 {
		t.Errorf("read the symlink %d times and its target %d times, want 0 and 1", src.Opens("model/l"), src.Opens("model/a"))
	}
	if src.Unclosed() != 0 {
		t.Errorf("%d readers are left open", src.Unclosed())
	}

	src = newSource()
	report, err = carton.Verify(t.Context(), src, carton.VerifyOptions{NoContent: true})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Bytes != 0 || !slices.Equal(report.Unread, all) || src.Opens("model/a") != 0 {
		t.Errorf("NoContent: got %+v, want all unread", report)
	}

	src = newSource()
	report, err = carton.Verify(t.Context(), src, carton.VerifyOptions{Links: true})
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Links", report.Findings, []string{"error: model/far: is linked"})
	if len(report.Unread) != 0 {
		t.Errorf("Links: got %v unread, want none", report.Unread)
	}
}

// A linked carton.toml is a warning: nothing says that it is wrong.
func TestVerifyWithLinkedInfo(t *testing.T) {
	links := &carton.Links{URLs: map[string][]string{hashOf(minimalInfo): {"https://example.com/x"}}}
	src := cartontest.New(map[string][]byte{carton.InfoName: []byte(minimalInfo), carton.IndexName: []byte(emptyIndex)}, nil, cartontest.WithLinks(links))
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Verify", report.Findings, []string{
		"warning: carton.toml: is linked, and was not checked", "warning: model/: holds no file",
	})
	if !report.OK() || !slices.Equal(report.Unread, []string{carton.InfoName}) {
		t.Errorf("got %+v, want it unread", report)
	}
}

// What is the source's fault is an error, not a finding.
func TestVerifyOfASourceThatFails(t *testing.T) {
	broken := errors.New("connection reset")
	for _, path := range []string{"model/a", carton.InfoName, carton.IndexName} {
		src := cartontest.New(map[string][]byte{"model/a": []byte("weights"), carton.IndexName: []byte(emptyIndex)}, nil,
			cartontest.WithOpen(func(p string, _ int, r io.Reader) (io.Reader, error) {
				if p == path {
					return nil, broken
				}
				return r, nil
			}))
		if report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{}); !errors.Is(err, broken) {
			t.Errorf("%s: got %+v, %v; want %v", path, report, err, broken)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	src := cartontest.New(map[string][]byte{"model/a": []byte("weights")}, nil)
	if _, err := carton.Verify(gone, src, carton.VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	src = cartontest.New(nil, nil, cartontest.WithMembersError(broken))
	if _, err := carton.Check(t.Context(), src); !errors.Is(err, broken) {
		t.Errorf("Check: got %v, want %v", err, broken)
	}
	vanished := cartontest.New(map[string][]byte{"model/a": nil, carton.IndexName: []byte(emptyIndex)}, nil,
		cartontest.WithOpen(func(p string, _ int, r io.Reader) (io.Reader, error) {
			if p == "model/a" {
				return nil, &carton.Error{Path: p, Kind: fs.ErrNotExist}
			}
			return r, nil
		}))
	if _, err := carton.Verify(t.Context(), vanished, carton.VerifyOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a member that vanishes: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestVerifyReportsProgress(t *testing.T) {
	var mu sync.Mutex
	states := map[string][]progress.State{}
	done := map[string]int64{}
	report, err := carton.Verify(t.Context(), mustOpen(t, good().bytes()), carton.VerifyOptions{
		Concurrency: 1,
		Progress: func(e progress.Event) {
			mu.Lock()
			defer mu.Unlock()
			if s := states[e.Name]; len(s) == 0 || s[len(s)-1] != e.State {
				states[e.Name] = append(states[e.Name], e.State)
			}
			done[e.Name] = e.Done
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []progress.State{progress.Started, progress.Moving, progress.Finished}
	if !slices.Equal(states["model/a"], want) || done["model/a"] != 7 {
		t.Errorf("got %v and %d bytes, want %v and 7", states["model/a"], done["model/a"], want)
	}
	if report.Bytes != int64(7+len(minimalInfo)) {
		t.Errorf("got %d bytes, want %d", report.Bytes, 7+len(minimalInfo))
	}
}

func mustOpen(t *testing.T, b []byte) carton.Source {
	t.Helper()
	src, err := openBoth(t, b)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// A string tensor too large to be parsed is no fault.
func TestVerifyOfManyStrings(t *testing.T) {
	index := "[[tensor]]\nname = 's'\ndtype = 'string'\nshape = [1]\nfile = 's.toml'\ninner = []\n"
	src, err := carton.OpenFS(folderOf(carton.InfoName, minimalInfo, carton.IndexName, index,
		"tensor_data/s.toml", "data = ['"+strings.Repeat("a", carton.MaxStringTensorBytes)+"']\n"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Verify", report.Findings, []string{"warning: model/: holds no file", "warning: tensor_data/s.toml: is 16777228 bytes: strings are counted in at most"})
}

// Names that the zip does not mark as UTF-8 are read, with a warning.
func TestUnmarkedNames(t *testing.T) {
	z := zipOf("model/gr\u00f6\u00dfe", "a", carton.InfoName, minimalInfo, carton.IndexName, emptyIndex)
	z.files[0].both(func(h *rawHeader) { h.flags = 0 })
	found, err := carton.Check(t.Context(), mustOpen(t, z.bytes()))
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Check", found, []string{"warning: model/gr\u00f6\u00dfe: name is not ASCII, and the zip does not mark it"})
}

// What is odd about MANIFEST's bytes is a warning; the bytes stay.
func TestManifestWarnings(t *testing.T) {
	files := folderOf(carton.InfoName, minimalInfo, carton.IndexName, emptyIndex, "model/a", "")
	raw := "model/a=" + hashOf("") + "\r\n" + strings.TrimSuffix(manifestOf(carton.InfoName, minimalInfo, carton.IndexName, emptyIndex), "\n")
	src, err := carton.OpenFS(with(files, carton.ManifestName, raw))
	if err != nil {
		t.Fatal(err)
	}
	found, err := carton.Check(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Check", found, []string{
		"warning: MANIFEST: has CRLF line ends", "warning: MANIFEST: is not in bytewise order", "warning: MANIFEST: does not end with a newline",
	})
	if string(src.Manifest().Bytes()) != raw {
		t.Errorf("got %q, want %q", src.Manifest().Bytes(), raw)
	}
}
