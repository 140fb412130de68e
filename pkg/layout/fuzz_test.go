package layout_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FuzzTarReader wants what is accepted to be what archive/tar sees too, to lie
// where the offsets say, and to be found by ScanTar as well.
func FuzzTarReader(f *testing.F) {
	for _, c := range tarCases {
		f.Add(tarBytes(f, c.entries))
	}
	long := strings.Repeat("n", 130)
	f.Add(foreign(f, tar.Header{Typeflag: tar.TypeSymlink, Name: long, Linkname: long, Format: tar.FormatGNU}))
	f.Add(foreign(f, tar.Header{Typeflag: tar.TypeReg, Name: long, Size: 7, Uid: 1 << 30, Format: tar.FormatPAX}))
	f.Add(join(block("f", '0', 0, nil), end))
	f.Add(join(pax(record("size", "5")), block("f", '0', 0, nil), body("hello"), end))
	f.Add(join(block("g", 'g', 9, nil), body(record("k", "vvvv")), block("f", 0, 5, nil), body("hello"), end))
	f.Fuzz(func(t *testing.T, b []byte) {
		tryTar(t, b)
		tryTar(t, withSums(b)) // or hardly any change gets past the checksum
	})
}

func tryTar(t *testing.T, b []byte) {
	t.Helper()
	list, err := readTar(bytes.NewReader(b))
	if err != nil {
		if !errors.Is(err, layout.ErrFormat) && !errors.Is(err, layout.ErrLimit) {
			t.Errorf("got %v, want ErrFormat or ErrLimit", err)
		}
		return
	}
	for _, e := range list {
		if string(b[e.Offset:][:e.Size]) != e.Content {
			t.Errorf("%q: other content at its offset", e.Path)
		}
	}
	scanned(t, "fuzz", b, list)
	sameAsArchiveTar(t, b, list)
}

// withSums gives every block of b that is not zero the checksum of a header,
// whatever it is.
func withSums(b []byte) []byte {
	b = bytes.Clone(b)
	for block := b; len(block) >= 512; block = block[512:] {
		if !bytes.Equal(block[:512], end[:512]) {
			setSum(block[:512])
		}
	}
	return b
}

// sameAsArchiveTar compares with archive/tar, where that reads b too: it looks
// at owners and times, which may be broken.
func sameAsArchiveTar(t *testing.T, b []byte, list []entry) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(b))
	for i := 0; ; {
		h, err := r.Next()
		if err == io.EOF { //nolint:errorlint // Next's own
			if i != len(list) {
				t.Errorf("got %d entries, archive/tar %d", len(list), i)
			}
			return
		}
		if err != nil {
			return
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Errorf("archive/tar: %v", err)
			return
		}
		if i == len(list) {
			t.Errorf("archive/tar sees %q behind the last entry", h.Name)
			return
		}
		e := list[i]
		i++
		name := h.Name
		for strings.HasPrefix(name, "./") && strings.TrimSuffix(name, "/") != "." {
			name = name[2:]
		}
		got := []any{e.Path, e.Folder, e.Target, e.Content}
		want := []any{strings.TrimSuffix(name, "/"), h.Typeflag == tar.TypeDir, h.Linkname, string(content)}
		if h.Typeflag != tar.TypeSymlink {
			want[2] = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("archive/tar sees another entry: %s", diff)
		}
	}
}

// FuzzParseManifest wants what is accepted to mean the same to encoding/json,
// and to survive being written and read again.
func FuzzParseManifest(f *testing.F) {
	for _, m := range goodManifests(f) {
		f.Add([]byte(m))
	}
	for _, c := range badManifests {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := layout.ParseManifest(b)
		if err != nil {
			if !errors.Is(err, layout.ErrFormat) && !errors.Is(err, layout.ErrLimit) && !errors.Is(err, layout.ErrDigest) {
				t.Errorf("got %v, want an error of a known kind", err)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 2000 {
				t.Errorf("the error is not one short line: %q", err)
			}
			return
		}
		for _, d := range append([]ocispec.Descriptor{m.Config}, m.Layers...) {
			if err := layout.CheckDescriptor(d); err != nil {
				t.Error(err)
			}
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := layout.ParseManifest(again)
		if err != nil {
			t.Fatalf("does not read what it wrote: %v", err)
		}
		if diff := cmp.Diff(m, back, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
