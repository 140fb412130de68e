package cartontest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"sync"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// reader keeps the promise of carton.Source's Open.
type reader struct {
	ctx  context.Context //nolint:containedctx // a reader belongs to the call that opened it
	r    io.Reader
	path string
	want string
	hash hash.Hash
	done func()
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.hash.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(r.hash.Sum(nil)); got != r.want {
			return n, &carton.Error{
				Path: r.path, Kind: carton.ErrChecksum,
				Msg: "got sha256 " + got + ", want " + r.want,
			}
		}
	}
	return n, err
}

func (r *reader) Close() error {
	r.done()
	return nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FailAfter is the first n bytes of r, and then err.
func FailAfter(r io.Reader, n int64, err error) io.Reader {
	return io.MultiReader(io.LimitReader(r, n), failing{err})
}

// Temporary is an error that says of itself that another attempt may do
// better.
type Temporary struct{ Text string }

// Error returns the text.
func (t *Temporary) Error() string { return t.Text }

// Temporary returns true.
func (t *Temporary) Temporary() bool { return true }

// Zeros is content of n zero bytes that nobody holds. Its hash is computed when
// it is first asked for.
func Zeros(n int64) Content { return &zeros{n: n} }

type zeros struct {
	n    int64
	once sync.Once
	hash string
}

func (z *zeros) Size() int64 { return z.n }

func (z *zeros) Open() io.Reader { return io.LimitReader(zeroReader{}, z.n) }

func (z *zeros) Hash() string {
	z.once.Do(func() {
		h := sha256.New()
		_, _ = io.Copy(h, z.Open())
		z.hash = hex.EncodeToString(h.Sum(nil))
	})
	return z.hash
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Manifest makes the MANIFEST that lists the files and symlinks of fsys, but for a
// MANIFEST or LINKS that is there.
func Manifest(fsys fs.FS) (*carton.Manifest, error) {
	var entries []carton.Entry
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || p == carton.ManifestName || p == carton.LinksName {
			return err
		}
		b, err := fs.ReadFile(fsys, p)
		entries = append(entries, carton.Entry{Path: p, Hash: Bytes(b).Hash()})
		return err
	})
	if err != nil {
		return nil, err
	}
	return carton.NewManifest(entries)
}
