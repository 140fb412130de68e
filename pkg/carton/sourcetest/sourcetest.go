// Package sourcetest tests implementations of carton.Source, as testing/fstest does
// those of fs.FS: [TestSource] holds one against everything that the interface
// promises.
package sourcetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Options say more about the sources that are tested.
type Options struct {
	// Broken, where it is set, opens a source and names a regular member whose content
	// is not what MANIFEST lists: damaged, too short or too long.
	Broken func() (src carton.Source, path string)
}

// TestSource runs all tests. open opens the same carton each time, which nothing is
// wrong with and which has a member besides carton.toml; it calls t.Fatal where it
// can't. The content is read several times, and held in memory member by member.
//
// Run it with the race detector: sources are used from many goroutines.
func TestSource(t *testing.T, open func() carton.Source, opts Options) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, carton.Source)
	}{
		{"Manifest", manifest},
		{"Links", links},
		{"Members", members},
		{"MembersAreTheCallers", membersAreTheCallers},
		{"Symlinks", symlinks},
		{"Sizes", sizes},
		{"Content", content},
		{"ContentInAnyOrder", contentInAnyOrder},
		{"Ranges", ranges},
		{"NotInTheCarton", notInTheCarton},
		{"Checks", checks},
		{"ManyAtOnce", manyAtOnce},
		{"Close", closing},
	} {
		t.Run(test.name, func(t *testing.T) {
			src := open()
			defer src.Close()
			test.run(t, src)
		})
	}
	if opts.Broken != nil {
		t.Run("BrokenContent", func(t *testing.T) { brokenContent(t, opts.Broken) })
	}
}

// manifest: MANIFEST is there, is one, and opens like a member.
func manifest(t *testing.T, src carton.Source) {
	m := src.Manifest()
	if m == nil {
		t.Fatal("Manifest returned nil")
	}
	again, err := carton.ParseManifest(m.Bytes())
	if err != nil {
		t.Fatalf("its bytes: %v", err)
	}
	if again.ModelHash() != m.ModelHash() || len(again.Entries()) != len(m.Entries()) {
		t.Errorf("got the model hash %s, and %s of its bytes", m.ModelHash(), again.ModelHash())
	}
	got, err := read(src.Open(t.Context(), carton.ManifestName))
	if err != nil || !bytes.Equal(got, m.Bytes()) {
		t.Errorf("Open: got %d bytes, %v, want MANIFEST", len(got), err)
	}
	testRanges(t, src, carton.ManifestName, m.Bytes())
}

// links: LINKS, where there is one, lists URLs by hashes.
func links(t *testing.T, src carton.Source) {
	if l := src.Links(); l != nil {
		if _, err := carton.ParseLinks(l.Marshal()); err != nil {
			t.Error(err)
		}
	}
}

// list returns the members that can be read: those whose links nobody follows can't.
func list(t *testing.T, src carton.Source) []carton.Member {
	t.Helper()
	all, err := src.Members(t.Context())
	if err != nil {
		t.Fatalf("Members: %v", err)
	}
	return slices.DeleteFunc(all, func(m carton.Member) bool {
		if m.Place != carton.PlaceLinked {
			return false
		}
		r, err := src.Open(t.Context(), m.Path)
		if err == nil {
			r.Close()
			return false
		}
		if !errors.Is(err, carton.ErrLink) || m.Size >= 0 {
			t.Errorf("%s is linked, with %d bytes: got %v, want ErrLink and -1", m.Path, m.Size, err)
		}
		return true
	})
}

// members: one for every entry of MANIFEST, in bytewise order of paths.
func members(t *testing.T, src carton.Source) {
	got, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(src.Manifest().Entries()) {
		t.Errorf("got %d members, MANIFEST lists %d", len(got), len(src.Manifest().Entries()))
	}
	if !slices.IsSortedFunc(got, func(a, b carton.Member) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("they are not in bytewise order of paths")
	}
	var paths carton.Paths
	for _, m := range got {
		if err := paths.Add(m.Path); err != nil {
			t.Error(err)
		}
		e, ok := src.Manifest().Lookup(m.Path)
		switch {
		case !ok:
			t.Errorf("MANIFEST does not list %s", m.Path)
		case e.Hash != m.Hash:
			t.Errorf("%s: got the hash %s, MANIFEST lists %s", m.Path, m.Hash, e.Hash)
		case m.Size < -1 || m.Size < 0 && m.Ranged:
			t.Errorf("%s: got the size %d, ranged: %v", m.Path, m.Size, m.Ranged)
		}
	}
}

// membersAreTheCallers: what the caller does with the slice changes nothing.
func membersAreTheCallers(t *testing.T, src carton.Source) {
	first, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(first)
	clear(first)
	got, err := src.Members(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got other members once the first slice was cleared: %v", err)
	}
}

// symlinks are relative, clean, and end at a regular member in model/.
func symlinks(t *testing.T, src carton.Source) {
	got, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]carton.Member{}
	for _, m := range got {
		byPath[m.Path] = m
	}
	for _, m := range got {
		end := m
		for range carton.MaxSymlinks {
			if end.Target == "" {
				break
			}
			if path.Clean(end.Target) != end.Target || path.IsAbs(end.Target) {
				t.Errorf("%s: the target %s is not relative and clean", end.Path, end.Target)
			}
			end = byPath[path.Join(path.Dir(end.Path), end.Target)]
		}
		if m.Target == "" {
			continue
		}
		if end.Path == "" || end.Target != "" || !strings.HasPrefix(m.Path, "model/") || !strings.HasPrefix(end.Path, "model/") {
			t.Errorf("%s does not end at a file of model/", m.Path)
			continue
		}
		if m.Hash != end.Hash || m.Size != end.Size || m.Place != end.Place || m.Ranged != end.Ranged {
			t.Errorf("got %+v, want hash, size, place and ranged of %+v", m, end)
		}
	}
}

// sizes: what had a size keeps it, and what is told is right.
func sizes(t *testing.T, src carton.Source) {
	before := list(t, src)
	after := slices.Clone(before)
	if err := src.Sizes(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	for i, m := range after {
		if old := before[i]; m.Path != old.Path || m.Hash != old.Hash || old.Size >= 0 && m.Size != old.Size {
			t.Errorf("got %+v, and %+v before", m, old)
		}
		got, err := read(src.Open(t.Context(), m.Path))
		if err != nil || m.Size >= 0 && int64(len(got)) != m.Size {
			t.Errorf("%s: got %d bytes, %v, want %d", m.Path, len(got), err, m.Size)
		}
	}
	if err := src.Sizes(t.Context(), nil); err != nil {
		t.Errorf("no members: %v", err)
	}
}

// content is what MANIFEST lists, through symlinks too.
func content(t *testing.T, src carton.Source) {
	for _, m := range list(t, src) {
		want(t, src, m)
	}
}

// contentInAnyOrder: the last member can be read first, and one twice.
func contentInAnyOrder(t *testing.T, src carton.Source) {
	all := list(t, src)
	slices.Reverse(all)
	for _, m := range all {
		r, err := src.Open(t.Context(), m.Path)
		if err != nil {
			t.Errorf("%s: %v", m.Path, err)
			continue
		}
		_, _ = io.ReadFull(r, make([]byte, 1))
		if err := r.Close(); err != nil {
			t.Errorf("%s: closed before its end: %v", m.Path, err)
		}
		want(t, src, m)
	}
}

// want reads a member, and wants it to be what MANIFEST lists.
func want(t *testing.T, src carton.Source, m carton.Member) {
	t.Helper()
	got, err := read(src.Open(t.Context(), m.Path))
	sum := sha256.Sum256(got)
	switch {
	case err != nil:
		t.Errorf("%s: %v", m.Path, err)
	case hex.EncodeToString(sum[:]) != m.Hash:
		t.Errorf("%s: got io.EOF behind content that has another hash", m.Path)
	case m.Size >= 0 && m.Size != int64(len(got)):
		t.Errorf("%s: got %d bytes, want %d", m.Path, len(got), m.Size)
	}
}

// notInTheCarton: whatever is not listed is fs.ErrNotExist.
func notInTheCarton(t *testing.T, src carton.Source) {
	for _, p := range []string{"", ".", "model", "model/", "model/none", "/carton.toml", "../carton.toml", "manifest", carton.LinksName} {
		if _, err := read(src.Open(t.Context(), p)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open %q: got %v, want fs.ErrNotExist", p, err)
		}
		if _, err := read(src.OpenRange(t.Context(), p, 0, 1)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("OpenRange %q: got %v, want fs.ErrNotExist", p, err)
		}
	}
}

// checks: nothing is wrong with a source that nothing is wrong with.
func checks(t *testing.T, src carton.Source) {
	for _, m := range list(t, src) {
		if err := src.CheckFraming(t.Context(), m.Path); err != nil {
			t.Errorf("CheckFraming %s: %v", m.Path, err)
		}
		crc, ok := src.CRC(m.Path)
		if !ok {
			continue
		}
		b, err := read(src.Open(t.Context(), m.Path))
		if got := crc32.ChecksumIEEE(b); err != nil || got != crc {
			t.Errorf("CRC %s: got %08x, the content has %08x, %v", m.Path, crc, got, err)
		}
	}
	if _, ok := src.CRC("model/none"); ok {
		t.Error("CRC knows a member that is not there")
	}
	for _, f := range src.Findings() {
		if f.Severity != carton.SeverityWarning || f.Err == nil {
			t.Errorf("Findings: got %+v, want warnings", f)
		}
	}
}

// closing ends the readers that were given out.
func closing(t *testing.T, src carton.Source) {
	all := list(t, src)
	var open []io.ReadCloser
	for _, m := range all[:min(len(all), 8)] {
		if r, err := src.Open(t.Context(), m.Path); err == nil {
			open = append(open, r)
		}
	}
	if err := src.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for i, r := range open {
		b, err := io.ReadAll(r)
		if sum := sha256.Sum256(b); err == nil && hex.EncodeToString(sum[:]) != all[i].Hash {
			t.Errorf("%s: got io.EOF after Close, and not the content", all[i].Path)
		}
		r.Close()
	}
}

// brokenContent never ends with io.EOF, and says what is wrong.
func brokenContent(t *testing.T, open func() (carton.Source, string)) {
	src, path := open()
	defer src.Close()
	if _, err := read(src.Open(t.Context(), path)); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("%s: got %v, want ErrChecksum", path, err)
	}
}

// read reads what was opened to its end. Its error is nil for io.EOF alone.
func read(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
