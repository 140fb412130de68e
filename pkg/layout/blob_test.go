package layout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// blobs is a Fetcher that gives what it was told to, right or wrong.
type blobs struct {
	layout.Fetcher
	body io.Reader
	open int
}

func (b *blobs) OpenRange(_ context.Context, _ ocispec.Descriptor, off, n int64) (io.ReadCloser, error) {
	if off != 0 || n != -1 {
		return nil, fmt.Errorf("got the range %d+%d", off, n)
	}
	b.open++
	return closeCounter{b.body, &b.open}, nil
}

func TestOpenBlobVerifies(t *testing.T) {
	want := []byte("the bytes of a blob")
	desc := descOf(typeLayer, want)
	broken := errors.New("connection reset")
	flipped := bytes.Clone(want)
	flipped[3] ^= 1
	cases := []struct {
		name string
		body io.Reader
		want error
	}{
		{"right", bytes.NewReader(want), nil},
		{"right, byte by byte", iotest.OneByteReader(bytes.NewReader(want)), nil},
		{"right, EOF with the last bytes", iotest.DataErrReader(bytes.NewReader(want)), nil},
		{"shorter", bytes.NewReader(want[:5]), layout.ErrDigest},
		{"nothing", strings.NewReader(""), layout.ErrDigest},
		{"longer", io.MultiReader(bytes.NewReader(want), strings.NewReader("!")), layout.ErrDigest},
		{"much longer", io.MultiReader(bytes.NewReader(want), &repeated{block: want}), layout.ErrDigest},
		{"other bytes", bytes.NewReader(flipped), layout.ErrDigest},
		{"breaks off", io.MultiReader(bytes.NewReader(want[:5]), iotest.ErrReader(broken)), broken},
		{"a wrapped EOF is no end", io.MultiReader(bytes.NewReader(want), iotest.ErrReader(fmt.Errorf("cut: %w", io.EOF))), io.EOF},
	}
	for _, c := range cases {
		f := &blobs{body: c.body}
		r, err := layout.OpenBlob(t.Context(), f, desc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if int64(len(got)) > desc.Size || (err == nil && !bytes.Equal(got, want)) {
			t.Errorf("%s: got %q", c.name, got)
		}
		if _, again := r.Read(make([]byte, 1)); err != nil && !errors.Is(again, c.want) {
			t.Errorf("%s: reading on gives %v, want %v", c.name, again, c.want)
		}
		if r.Close(); f.open != 0 {
			t.Errorf("%s: the blob stays open", c.name)
		}
	}
}

func TestOpenBlobOfNoBytesAsksForNoRange(t *testing.T) {
	f := &blobs{}
	b, err := layout.ReadBlob(t.Context(), f, descOf(typeLayer, nil), 10)
	if err != nil || len(b) != 0 || f.open != 0 {
		t.Errorf("got %q, %v", b, err)
	}
	wrong := descOf(typeLayer, []byte("x"))
	wrong.Size = 0
	if _, err := layout.ReadBlob(t.Context(), f, wrong, 10); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("no bytes of another digest: got %v, want ErrDigest", err)
	}
}

func TestReadBlobHasALimit(t *testing.T) {
	want := []byte("twelve bytes")
	b, err := layout.ReadBlob(t.Context(), &blobs{body: bytes.NewReader(want)}, descOf(typeLayer, want), 12)
	if err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %q, %v", b, err)
	}
	f := &blobs{}
	if _, err := layout.ReadBlob(t.Context(), f, descOf(typeLayer, want), 11); !errors.Is(err, layout.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	lying := descOf(typeLayer, want)
	lying.Size = 3
	if _, err := layout.ReadBlob(t.Context(), &blobs{body: &repeated{block: want}}, lying, 11); !errors.Is(err, layout.ErrDigest) {
		t.Errorf("endless blob: got %v, want ErrDigest", err)
	}
}

func TestBadDescriptorsAreNotAskedFor(t *testing.T) {
	good := descOf(typeLayer, []byte("x"))
	for name, edit := range map[string]func(*ocispec.Descriptor){
		"no type":       func(d *ocispec.Descriptor) { d.MediaType = "" },
		"negative size": func(d *ocispec.Descriptor) { d.Size = -1 },
		"huge size":     func(d *ocispec.Descriptor) { d.Size = 1 << 53 },
		"path":          func(d *ocispec.Descriptor) { d.Digest = "sha256:../../etc/passwd" },
		"upper case":    func(d *ocispec.Descriptor) { d.Digest = digest.Digest(strings.ToUpper(string(d.Digest))) },
		"sha512":        func(d *ocispec.Descriptor) { d.Digest = digest.Digest("sha512:" + hexA + hexB) },
		"empty":         func(d *ocispec.Descriptor) { d.Digest = "" },
	} {
		d := good
		edit(&d)
		f := &blobs{}
		if _, err := layout.OpenBlob(t.Context(), f, d); !errors.Is(err, layout.ErrFormat) || f.open != 0 {
			t.Errorf("%s: got %v, want ErrFormat", name, err)
		}
	}
}

func TestVerifierOfANegativeSizeFails(t *testing.T) {
	r := layout.NewVerifier(nopCloser{strings.NewReader("x")}, ocispec.Descriptor{Size: -1})
	if _, err := io.ReadAll(r); !errors.Is(err, layout.ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	err := layout.CheckDigest("sha256:\x1b[2J\n" + digest.Digest(strings.Repeat("x", 10_000)))
	if s := err.Error(); strings.ContainsAny(s, "\n\x1b") || len(s) > 1000 {
		t.Errorf("got %q", s)
	}
}
