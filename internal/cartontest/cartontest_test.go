package cartontest_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

func read(t *testing.T, src carton.Source, path string) (string, error) {
	t.Helper()
	r, err := src.Open(t.Context(), path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestMembersAreWhatManifestLists(t *testing.T) {
	src := cartontest.New(map[string][]byte{
		"model/b": []byte("bee"),
		"model/a": nil,
	}, map[string]string{"model/l": "m", "model/m": "b"}, cartontest.WithBundle(3, "model/a", "model/b"))

	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, m := range members {
		e, ok := src.Manifest().Lookup(m.Path)
		if !ok || e.Hash != m.Hash {
			t.Errorf("%s: MANIFEST has %v, the member %s", m.Path, e, m.Hash)
		}
		got += m.Path + ">" + m.Target + " "
	}
	if want := "carton.toml> model/a> model/b> model/l>m model/m>b "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if members[1].Bundle != 3 || members[2].Bundle != 3 || members[0].Bundle != 0 {
		t.Errorf("bundles are wrong: %+v", members)
	}
	if s, err := read(t, src, "model/l"); s != "bee" || err != nil {
		t.Errorf("a symlink: got %q, %v, want its final target's content", s, err)
	}
	if s, err := read(t, src, carton.ManifestName); s != string(src.Manifest().Bytes()) || err != nil {
		t.Errorf("MANIFEST: got %q, %v", s, err)
	}
	if _, err := read(t, src, "model"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: got %v, want not exist", err)
	}
	if got := src.Unclosed(); got != 0 {
		t.Errorf("%d readers are open after Close", got)
	}
	if got := src.Opens("model/l"); got != 1 {
		t.Errorf("model/l: counted %d opens, want 1", got)
	}
}

func TestHooksAreChecked(t *testing.T) {
	broken := errors.New("broken")
	src := cartontest.New(map[string][]byte{"model/a": []byte("abc"), "model/b": []byte("abc")}, nil,
		cartontest.WithOpen(func(path string, before int, r io.Reader) (io.Reader, error) {
			switch {
			case path == "model/b":
				return cartontest.FailAfter(r, 2, broken), nil
			case before == 0:
				return cartontest.Bytes("abd").Open(), nil
			}
			return r, nil
		}))
	if _, err := read(t, src, "model/a"); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("changed content: got %v, want ErrChecksum", err)
	}
	if s, err := read(t, src, "model/a"); s != "abc" || err != nil {
		t.Errorf("second time: got %q, %v", s, err)
	}
	if s, err := read(t, src, "model/b"); s != "ab" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v, want ab and the error", s, err)
	}
}

func TestRangesEndAsPromised(t *testing.T) {
	src := cartontest.New(map[string][]byte{"model/a": []byte("abcdef")}, nil)
	for _, c := range []struct {
		off, n int64
		want   string
		err    error
	}{
		{0, -1, "abcdef", nil},
		{2, 3, "cde", nil},
		{6, 0, "", nil},
		{4, 3, "ef", io.ErrUnexpectedEOF},
		{7, -1, "", io.ErrUnexpectedEOF},
	} {
		r, err := src.OpenRange(t.Context(), "model/a", c.off, c.n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if string(b) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d+%d: got %q, %v, want %q, %v", c.off, c.n, b, err, c.want, c.err)
		}
	}
}

func TestLinkedMembersAreLeftOut(t *testing.T) {
	hash := cartontest.Bytes("w").Hash()
	src := cartontest.New(map[string][]byte{"model/w": []byte("w")}, nil,
		cartontest.WithLinks(&carton.Links{URLs: map[string][]string{hash: {"https://example.com/w"}}}))
	if _, err := read(t, src, "model/w"); !errors.Is(err, carton.ErrLink) {
		t.Errorf("got %v, want ErrLink", err)
	}
	members, _ := src.Members(t.Context())
	if m := members[1]; m.Size != -1 || m.Place != carton.PlaceLinked {
		t.Errorf("got %+v, want size -1, linked", m)
	}
}

func TestZerosAreNotHeld(t *testing.T) {
	z := cartontest.Zeros(1000)
	if err := iotest.TestReader(z.Open(), make([]byte, 1000)); err != nil {
		t.Error(err)
	}
	if got, want := z.Hash(), cartontest.Bytes(make([]byte, 1000)).Hash(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
