package layout_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

// content is what the member at path holds: n bytes that depend on the path.
func content(path string, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ path[i%len(path)]
	}
	return b
}

// opener opens what content says the entries hold.
func opener(entries []layout.TarEntry) layout.MemberOpener {
	sizes := map[string]int64{}
	for _, e := range entries {
		sizes[e.Path] = e.Size
	}
	return func(_ context.Context, path string, off int64) (io.ReadCloser, error) {
		n, ok := sizes[path]
		if !ok {
			return nil, fmt.Errorf("no member %s", path)
		}
		return io.NopCloser(bytes.NewReader(content(path, n)[off:])), nil
	}
}

func plan(t testing.TB, entries []layout.TarEntry) *layout.TarPlan {
	t.Helper()
	p, err := layout.NewTarPlan(entries)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tarBytes(t testing.TB, entries []layout.TarEntry) []byte {
	t.Helper()
	p := plan(t, entries)
	r, err := p.Open(t.Context(), 0, opener(entries))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != p.Size() {
		t.Fatalf("got %d bytes, the plan says %d", len(b), p.Size())
	}
	return b
}

var (
	long120 = "model/" + strings.Repeat("d", 60) + "/" + strings.Repeat("f", 53)
	long300 = "model/" + strings.Repeat("e", 200) + "/" + strings.Repeat("g", 93)
)

// tarCases are entries whose tars are pinned: what reaches a digest must not
// change with a release, of this program or of Go.
var tarCases = []struct {
	name    string
	entries []layout.TarEntry
	digest  digest.Digest
}{
	{"nothing", nil, "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"},
	{"short paths", []layout.TarEntry{
		{Path: "model/a/b.json", Size: 513},
		{Path: "model/a.txt", Size: 512},
		{Path: "model/a/link", Target: "../a.txt"},
		{Path: "misc/empty"},
		{Path: "model/.hidden", Size: 1},
	}, "sha256:7d4edfed02fe526a1f42cadfc4e3da10b27d23a886c36cf48284843de25ad0d9"},
	{"over 100 bytes", []layout.TarEntry{{Path: long120, Size: 5}}, "sha256:05d9ddde4cade9ca1f895cf06f8d982dfbdbfef1fd6004b5ff9cec55ea40a1d5"},
	{"over 256 bytes", []layout.TarEntry{{Path: long300, Size: 5}}, "sha256:4d182bf853d03ea0cb9a80011967b7881a19ecb54d0fcd08bdd32295626021d4"},
	{"long target", []layout.TarEntry{{Path: "model/link", Target: long300}, {Path: "model/" + long300, Size: 1}}, "sha256:73d20256a2a5b65a86057619b199674d7104555ce33793146dc5ff6b1aeb030a"},
	{"beyond ASCII", []layout.TarEntry{{Path: "model/größe/モデル.bin", Size: 7}, {Path: "model/l", Target: "größe/モデル.bin"}}, "sha256:0549f249fb9c97cc73dd626accd24f6b19c314d58ac3a60305609a8bce1f7ce0"},
}

func TestTarBytesArePinned(t *testing.T) {
	for _, c := range tarCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := plan(t, c.entries).Digest(t.Context(), opener(c.entries))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.digest {
				t.Errorf("got %s, want %s", got, c.digest)
			}
			reversed := slices.Clone(c.entries)
			slices.Reverse(reversed)
			if other := digest.FromBytes(tarBytes(t, reversed)); other != got {
				t.Errorf("the order of entries matters: got %s and %s", got, other)
			}
		})
	}
}

// listing is what a tar holds, in its order.
type listing struct {
	Name, Target string
	Type         byte
	Mode         int64
	Content      string
}

func wantListing(t *testing.T, b []byte) []listing {
	t.Helper()
	var list []listing
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s: got time %v, owner %d:%d %q:%q", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		for key := range h.PAXRecords {
			if key != "path" && key != "linkpath" && key != "size" {
				t.Errorf("%s: has the PAX record %s", h.Name, key)
			}
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, listing{h.Name, h.Linkname, h.Typeflag, h.Mode, string(body)})
	}
}

func TestTarReadsBackByArchiveTar(t *testing.T) {
	entries := tarCases[1].entries
	want := []listing{
		{"misc/", "", tar.TypeDir, 0o755, ""},
		{"misc/empty", "", tar.TypeReg, 0o644, ""},
		{"model/", "", tar.TypeDir, 0o755, ""},
		{"model/.hidden", "", tar.TypeReg, 0o644, string(content("model/.hidden", 1))},
		{"model/a.txt", "", tar.TypeReg, 0o644, string(content("model/a.txt", 512))},
		{"model/a/", "", tar.TypeDir, 0o755, ""},
		{"model/a/b.json", "", tar.TypeReg, 0o644, string(content("model/a/b.json", 513))},
		{"model/a/link", "../a.txt", tar.TypeSymlink, 0o777, ""},
	}
	if diff := cmp.Diff(want, wantListing(t, tarBytes(t, entries))); diff != "" {
		t.Error(diff)
	}
	for _, c := range tarCases {
		names := map[string]bool{}
		for _, l := range wantListing(t, tarBytes(t, c.entries)) {
			names[l.Name] = true
		}
		for _, e := range c.entries {
			if !names[e.Path] {
				t.Errorf("%s: archive/tar does not see %s", c.name, e.Path)
			}
		}
	}
}

func TestTarEndsWithTwoZeroBlocksAndNoMore(t *testing.T) {
	entries := []layout.TarEntry{{Path: "a", Size: 3}}
	b := tarBytes(t, entries)
	if len(b) != 512+512+1024 {
		t.Errorf("got %d bytes, want a header, a block and two zero blocks", len(b))
	}
	if !bytes.Equal(b[1024:], make([]byte, 1024)) {
		t.Error("the end is not zero")
	}
}

func TestTarExtentsAreWhereTheContentIs(t *testing.T) {
	for _, c := range tarCases {
		b := tarBytes(t, c.entries)
		p := plan(t, c.entries)
		for _, e := range c.entries {
			off, n, ok := p.Extent(e.Path)
			if !ok || n != e.Size {
				t.Errorf("%s: %s: got length %d, %v, want %d", c.name, e.Path, n, ok, e.Size)
			}
			if !bytes.Equal(b[off:off+n], content(e.Path, e.Size)) {
				t.Errorf("%s: %s: other bytes at %d", c.name, e.Path, off)
			}
		}
		for _, none := range []string{"model", "model/", "nothing", ""} {
			if _, _, ok := p.Extent(none); ok {
				t.Errorf("%s: has an extent for %q", c.name, none)
			}
		}
	}
}

func TestTarStreamsFromAnyOffset(t *testing.T) {
	for _, c := range tarCases {
		whole := tarBytes(t, c.entries)
		p := plan(t, c.entries)
		for off := int64(0); off <= p.Size(); off++ {
			if off%512 > 2 && off%512 < 510 && off%61 != 0 {
				continue // edges matter
			}
			r, err := p.Open(t.Context(), off, inside(t, p, opener(c.entries)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, whole[off:]) {
				t.Fatalf("%s from %d: got %d bytes, %v, want %d", c.name, off, len(got), err, len(whole)-int(off))
			}
			r.Close()
		}
		for _, off := range []int64{-1, p.Size() + 1} {
			if _, err := p.Open(t.Context(), off, opener(c.entries)); err == nil {
				t.Errorf("%s: opens at %d of %d", c.name, off, p.Size())
			}
		}
	}
}

// inside wants offsets to lie inside of members: behind the last byte there is
// no range to ask for.
func inside(t *testing.T, p *layout.TarPlan, open layout.MemberOpener) layout.MemberOpener {
	return func(ctx context.Context, path string, off int64) (io.ReadCloser, error) {
		if _, n, _ := p.Extent(path); off >= n && off > 0 {
			t.Errorf("%s of %d bytes is opened at %d", path, n, off)
		}
		return open(ctx, path, off)
	}
}

func TestTarStreamInSmallReads(t *testing.T) {
	entries := tarCases[1].entries
	r, err := plan(t, entries).Open(t.Context(), 0, opener(entries))
	if err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(r, tarBytes(t, entries)); err != nil {
		t.Error(err)
	}
}

// Headers of files over 8 GiB and over a tebibyte, without their content.
func TestTarOfHugeMembers(t *testing.T) {
	entries := []layout.TarEntry{
		{Path: "model/a.bin", Size: 8<<30 - 1},
		{Path: "model/b.bin", Size: 8 << 30},
		{Path: "model/c.bin", Size: 5 << 40},
		{Path: "model/d.bin", Size: 1},
	}
	p := plan(t, entries)
	want := int64(512*5+2*1024) + 8<<30 + 8<<30 + 5<<40 + 512 + 1024
	if p.Size() != want {
		t.Errorf("got a size of %d, want %d", p.Size(), want)
	}
	for _, e := range entries {
		off, _, _ := p.Extent(e.Path)
		start := off - 512
		if e.Size >= 8<<30 {
			start = off - 1536 // a PAX header in front
		}
		r, err := p.Open(t.Context(), start, func(context.Context, string, int64) (io.ReadCloser, error) {
			return io.NopCloser(zeros{}), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := tar.NewReader(r).Next()
		if err != nil || h.Name != e.Path || h.Size != e.Size {
			t.Errorf("%s: got %+v, %v", e.Path, h, err)
		}
		if e.Size >= 8<<30 {
			if diff := cmp.Diff(map[string]string{"size": fmt.Sprint(e.Size)}, h.PAXRecords); diff != "" {
				t.Error(diff)
			}
		}
		r.Close()
	}
	r, err := p.Open(t.Context(), 0, func(context.Context, string, int64) (io.ReadCloser, error) {
		return nil, errors.New("content is not asked for")
	})
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1024) // the folder's header and the first file's
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if got, want := digest.FromBytes(head), digest.Digest("sha256:1ac594cfaffea426c7a2a5ddd5f178e22761f561d250b83bcb8b4b4403aba295"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestTarPlanRefuses(t *testing.T) {
	cases := map[string][]layout.TarEntry{
		"empty path":        {{Path: ""}},
		"absolute":          {{Path: "/a"}},
		"parent":            {{Path: "../a"}},
		"inner parent":      {{Path: "a/../b"}},
		"dot":               {{Path: "."}},
		"dots":              {{Path: ".."}},
		"trailing slash":    {{Path: "a/"}},
		"NUL":               {{Path: "a\x00b"}},
		"not UTF-8":         {{Path: "a\xff"}},
		"NUL in target":     {{Path: "a", Target: "b\x00"}},
		"target not UTF-8":  {{Path: "a", Target: "\xff"}},
		"twice":             {{Path: "a"}, {Path: "a"}},
		"file and folder":   {{Path: "a"}, {Path: "a.txt"}, {Path: "a/b"}},
		"negative":          {{Path: "a", Size: -1}},
		"too large":         {{Path: "a", Size: 1 << 62}},
		"too large in sum":  {{Path: "a", Size: 1<<62 - 1<<20}, {Path: "b", Size: 1 << 30}},
		"symlink with size": {{Path: "a", Target: "b", Size: 1}},
	}
	for name, entries := range cases {
		if _, err := layout.NewTarPlan(entries); !errors.Is(err, layout.ErrFormat) {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestTarStreamFaults(t *testing.T) {
	entries := []layout.TarEntry{{Path: "model/a", Size: 1000}, {Path: "model/b", Size: 0}}
	broken := errors.New("disk is gone")
	cases := []struct {
		name string
		open layout.MemberOpener
		want error
	}{
		{"short", func(context.Context, string, int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("short")), nil
		}, layout.ErrDigest},
		{"long", func(context.Context, string, int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(make([]byte, 1001))), nil
		}, layout.ErrDigest},
		{"not empty", func(_ context.Context, path string, _ int64) (io.ReadCloser, error) {
			n := map[string]int64{"model/a": 1000, "model/b": 1}[path]
			return io.NopCloser(bytes.NewReader(make([]byte, n))), nil
		}, layout.ErrDigest},
		{"fails to open", func(context.Context, string, int64) (io.ReadCloser, error) { return nil, broken }, broken},
		{"fails in the middle", func(context.Context, string, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken))), nil
		}, broken},
		{"fails at its end", func(context.Context, string, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(broken))), nil
		}, broken},
		{"a wrapped EOF is no end", func(context.Context, string, int64) (io.ReadCloser, error) {
			end := fmt.Errorf("connection: %w", io.EOF)
			return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 1000)), iotest.ErrReader(end))), nil
		}, io.EOF},
	}
	for _, c := range cases {
		r, err := plan(t, entries).Open(t.Context(), 0, c.open)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(r)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "model/") {
			t.Errorf("%s: got %v, want %v with the path", c.name, err, c.want)
		}
		if _, again := r.Read(make([]byte, 1)); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: reading on gives %v, want the same error", c.name, again)
		}
		if _, err := plan(t, entries).Digest(t.Context(), c.open); !errors.Is(err, c.want) {
			t.Errorf("%s: Digest gives %v, want %v", c.name, err, c.want)
		}
	}
}

// closeCounter counts how many readers are open.
type closeCounter struct {
	io.Reader
	open *int
}

func (c closeCounter) Close() error { *c.open--; return nil }

func TestTarStreamOpensOneMemberAtATimeAndClosesIt(t *testing.T) {
	entries := []layout.TarEntry{{Path: "a", Size: 600}, {Path: "b", Size: 600}, {Path: "c"}}
	open, most := 0, 0
	count := func(_ context.Context, path string, off int64) (io.ReadCloser, error) {
		r, err := opener(entries)(t.Context(), path, off)
		open++
		most = max(most, open)
		return closeCounter{r, &open}, err
	}
	r, err := plan(t, entries).Open(t.Context(), 0, count)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if open != 0 || most != 1 {
		t.Errorf("got %d open at the end, %d at once, want 0 and 1", open, most)
	}
	r, err = plan(t, entries).Open(t.Context(), 600, count)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil || open != 1 {
		t.Fatalf("got %d open, %v", open, err)
	}
	if err := r.Close(); err != nil || open != 0 {
		t.Errorf("got %d open after Close, %v, want 0", open, err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("reads after Close")
	}
}

func TestTarStreamStopsWithItsContext(t *testing.T) {
	entries := []layout.TarEntry{{Path: "a", Size: 1}, {Path: "b", Size: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := plan(t, entries).Open(ctx, 0, opener(entries))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestOtherProgramsReadOurTars(t *testing.T) {
	testenv.Heavy(t)
	for _, program := range []string{"tar", "python3"} {
		t.Run(program, func(t *testing.T) {
			bin := testenv.Program(t, program)
			for _, c := range tarCases[1:] {
				name := filepath.Join(t.TempDir(), "layer.tar")
				if err := os.WriteFile(name, tarBytes(t, c.entries), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(bin, "-tf", name, "--quoting-style=literal")
				if program == "python3" {
					cmd = exec.Command(bin, "-c", `
import sys, tarfile
sys.stdout.reconfigure(encoding="utf-8")
for m in tarfile.open(sys.argv[1], "r:"):
    print(m.name + "/" * m.isdir())`, name)
				}
				cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v: %s", c.name, err, out)
				}
				var want []string
				for _, l := range wantListing(t, tarBytes(t, c.entries)) {
					want = append(want, l.Name)
				}
				if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(out)), "\n")); diff != "" {
					t.Errorf("%s: %s", c.name, diff)
				}
			}
		})
	}
}

func ExampleTarPlan() {
	p, err := layout.NewTarPlan([]layout.TarEntry{{Path: "model/config.json", Size: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	off, n, _ := p.Extent("model/config.json")
	fmt.Println(p.Size(), off, n)
	// Output: 2560 1024 2
}
