package e2e

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
)

// The promise: a push of what the registry has reads no member. It is a matter
// of the library, since no file can be told to break inside its members.

// extent is where the bytes of one member lie.
type extent struct {
	path     string
	from, to int64
}

// fragile is a file that breaks where somebody reads a member: where a read
// begins inside an extent, or goes further into one than the local header before
// it excuses. Only the end of the file may be read in one piece, whatever lies
// there: that is how the zip's directory is found.
type fragile struct {
	io.ReaderAt
	size    int64
	extents []extent
}

const (
	// mostEnd is how much of the end may be read: what a reader takes at once, to
	// find an end record with the largest comment there can be.
	mostEnd = 96 << 10
	// mostAhead is how far a read of a local header may go on.
	mostAhead = 128
)

var errFragile = errors.New("a member was read")

func (f *fragile) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if end == f.size && len(p) <= mostEnd {
		return f.ReaderAt.ReadAt(p, off)
	}
	for _, e := range f.extents {
		if off >= e.from && off < e.to || off < e.from && end > e.from+mostAhead {
			return 0, fmt.Errorf("%w: %s, at %d", errFragile, e.path, off)
		}
	}
	return f.ReaderAt.ReadAt(p, off)
}

// extents returns where members lie, by archive/zip, without the three that say
// something about the rest: a push looks whether they are right.
func extents(t *testing.T, name string) []extent {
	t.Helper()
	r, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []extent
	for _, f := range r.File {
		if f.Name == carton.ManifestName || f.Name == carton.InfoName || f.Name == carton.IndexName {
			continue
		}
		from, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, extent{f.Name, from, from + int64(f.CompressedSize64)})
	}
	return all
}

func TestSecondPushReadsNoMember(t *testing.T) {
	c := ours(t)
	name := c.file
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	s := testregistry.Start(t, testregistry.Options{})
	push := func(r io.ReaderAt) (*client.PushResult, error) {
		src, err := carton.NewReader(r, info.Size())
		if err != nil {
			return nil, err
		}
		defer src.Close()
		// A new client, and no StateDir: nothing is remembered from the first push.
		fresh, err := client.New(client.Options{})
		if err != nil {
			return nil, err
		}
		return fresh.PushSource(t.Context(), src, name, s.Host+"/org/test:1", client.PushOptions{})
	}
	broken := &fragile{f, info.Size(), extents(t, name)}
	if len(broken.extents) != 8 {
		t.Fatalf("got %d members to break at, want 8", len(broken.extents))
	}

	if _, err := push(broken); !errors.Is(err, errFragile) {
		t.Fatalf("push into an empty registry from a broken file: got %v, want %v", err, errFragile)
	}
	first, err := push(f)
	if err != nil {
		t.Fatal(err)
	}
	s.Traffic.Reset()
	second, err := push(broken)
	if err != nil {
		t.Fatalf("second push: %v", err)
	}
	if second.Digest != first.Digest || second.ModelHash != c.hash || second.BytesUploaded != 0 {
		t.Errorf("second push: got digest %s, model hash %s and %d bytes uploaded, want %s, %s and none",
			second.Digest, second.ModelHash, second.BytesUploaded, first.Digest, c.hash)
	}
	if in := s.Traffic.BlobBytesIn(); in != 0 {
		t.Errorf("second push: the registry got %d bytes, want none", in)
	}
}
