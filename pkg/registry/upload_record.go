package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
)

// maxSwept is how many files of a folder are looked at for ones that are too old.
const maxSwept = 10_000

// record is the file that remembers one upload, locked as long as the upload
// goes on: who finds it locked sends the same blob through an upload of its own,
// and remembers none. A record that can't be kept costs time and nothing else,
// so it has no errors; a nil one remembers nothing.
type record struct {
	root  *os.Root
	name  string
	file  *os.File
	about state // all but the address
	now   func() time.Time

	mu      sync.Mutex  // a request's body is read, and noted, by its transport
	session session     // that is remembered
	hashes  []savedHash // of what it was sent
	length  int         // of what the file holds
	kept    bool        // the file remembers an upload
}

// openRecord opens the record of a blob's upload, and returns the state that it
// remembers, nil for none.
func (r *Repository) openRecord(desc ocispec.Descriptor) (*record, *state) {
	c := r.client
	if c.opts.StateDir == "" || desc.Size < minStateSize || !r.host.behaviour.resumes() {
		return nil, nil
	}
	root, err := place.PrivateDir(filepath.Join(c.opts.StateDir, "uploads"))
	if err != nil {
		return nil, nil
	}
	c.sweep.Do(func() { sweep(root, c.now()) })
	rec := &record{root: root, now: c.now, about: state{
		Registry: r.host.host, Repository: r.name.Repository, Digest: desc.Digest, Size: desc.Size,
	}}
	key := sha256.Sum256([]byte(rec.about.Registry + "\n" + rec.about.Repository + "\n" + rec.about.Digest.String()))
	rec.name = hex.EncodeToString(key[:])
	if rec.file, err = lock(root, rec.name); err != nil {
		root.Close()
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(rec.file, maxStateBytes+1))
	rec.length = len(b)
	s, ok := decodeState(b)
	if err != nil || !ok || !s.fits(rec.about, c.now()) {
		rec.clear()
		return rec, nil
	}
	rec.kept, rec.hashes = true, s.Hashes
	return rec, &s
}

// lock opens a file, made where it is not there, and locks it. A file that is not as
// this package makes them is fs.ErrInvalid, and stays as it is.
func lock(root *os.Root, name string) (*os.File, error) {
	f, _, err := place.Lock(root, name)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !place.IsPrivate(fi) {
		f.Close()
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	return f, nil
}

// save remembers where an upload goes on. It is one write, over what was there
// before and with blanks to its end, so that a process that is killed leaves the
// one or the other.
func (r *record) save(s session) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
	r.write()
}

// note remembers states of the hash of what the upload was sent.
func (r *record) note(hashes []savedHash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hashes = hashes; r.kept {
		r.write()
	}
}

// write writes the file. r.mu is held.
func (r *record) write() {
	now := r.about
	now.Location, now.MinChunk, now.Time, now.Hashes = r.session.location, r.session.minChunk, r.now(), r.hashes
	b := now.encode()
	if b == nil || now.Location == "" {
		r.empty()
		return
	}
	for len(b) < r.length {
		b = append(b, ' ')
	}
	n, err := r.file.WriteAt(b, 0)
	r.length, r.kept = max(r.length, n), err == nil
}

// clear forgets the upload, and keeps the file for another.
func (r *record) clear() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hashes = nil
	r.empty()
}

func (r *record) empty() {
	if r.file.Truncate(0) == nil {
		r.length, r.kept = 0, false
	}
}

// keeps reports whether the upload can go on in another run.
func (r *record) keeps() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept
}

// close ends the record. The file stays where it remembers an upload.
func (r *record) close() {
	if r == nil {
		return
	}
	if r.keeps() {
		r.file.Close()
	} else {
		r.remove()
	}
	r.root.Close()
}

// remove removes the file before anybody else can lock it; or, where open files
// can't be removed, after.
func (r *record) remove() {
	err := r.root.Remove(r.name)
	r.file.Close()
	if err != nil {
		_ = r.root.Remove(r.name)
	}
}

// recordStart is how the files of this package begin where they hold anything. They
// are called by a sha256; whatever else lies in their folder is somebody's.
const recordStart = `{"version":`

// isRecord reports whether a file with such a name is one of this package.
func isRecord(f *os.File) bool {
	b := make([]byte, len(recordStart))
	n, err := f.ReadAt(b, 0)
	return n == 0 && errors.Is(err, io.EOF) || string(b[:n]) == recordStart
}

// sweep removes what nobody went on with for too long.
func sweep(root *os.Root, now time.Time) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxSwept) // what was read is swept
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !sha256hex.Is(e.Name()) || !place.IsPrivate(fi) || now.Sub(fi.ModTime()) < maxStateAge {
			continue
		}
		f, err := lock(root, e.Name())
		if err != nil {
			continue // somebody goes on with it
		}
		if !isRecord(f) {
			f.Close()
			continue
		}
		(&record{root: root, name: e.Name(), file: f}).remove()
	}
}
