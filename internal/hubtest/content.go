package hubtest

import (
	"bytes"
	"crypto/sha1" // git's
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
)

// File is a file of a repository at one commit.
type File struct {
	Path string
	// Content is all of it, or its beginning where Size is more: what follows is
	// made of Seed.
	Content string
	Size    int64
	Seed    uint64
	// Large keeps the file in the storage, as git-lfs and xet do.
	Large bool

	// What the list says instead of what is true, "" and 0 for the truth.
	ListedHash, ListedGit string
	ListedSize            int64
}

// blockSize is the unit of what is made: a block of random bytes with its number.
const blockSize = 1 << 20

var random = sync.OnceValue(func() []byte {
	b := make([]byte, blockSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // which has no error
	return b
})

// size is the content's.
func (f *File) size() int64 { return max(f.Size, int64(len(f.Content))) }

// open reads the content.
func (f *File) open() io.ReadSeeker {
	return io.NewSectionReader(f, 0, f.size())
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= f.size() {
			return n, io.EOF
		}
		if at < int64(len(f.Content)) {
			n += copy(p[n:], f.Content[at:])
			continue
		}
		from := at % blockSize
		k := copy(p[n:min(int64(len(p)), int64(n)+f.size()-at)], random()[from:])
		var mark [16]byte
		binary.LittleEndian.PutUint64(mark[:], f.Seed)
		binary.LittleEndian.PutUint64(mark[8:], uint64(at/blockSize))
		if from < int64(len(mark)) {
			copy(p[n:n+k], mark[from:])
		}
		n += k
	}
	return n, nil
}

// sums returns the content's sha256 and git's hash, in hex.
func (f *File) sums() (large, git string) {
	l, g := sha256.New(), sha1.New()
	to := io.Writer(l)
	if !f.Large {
		fmt.Fprintf(g, "blob %d\x00", f.size())
		to = io.MultiWriter(l, g)
	}
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{f.open()}, make([]byte, blockSize)) // of memory
	large = hex.EncodeToString(l.Sum(nil))
	if f.Large {
		p := f.pointer(large)
		fmt.Fprintf(g, "blob %d\x00%s", len(p), p)
	}
	return large, hex.EncodeToString(g.Sum(nil))
}

// pointer is what git has of a large file.
// https://github.com/git-lfs/git-lfs/blob/v3.5.0/docs/spec.md
func (f *File) pointer(hash string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hash, f.size())
}

// Safetensors is a large file of so many bytes: a header, and one tensor of what is
// made of seed.
func Safetensors(path string, size int64, seed uint64) File {
	header := func(n int64) string {
		return fmt.Sprintf(`{"t":{"dtype":"U8","shape":[%d],"data_offsets":[0,%[1]d]}}`, n)
	}
	n := size - 8
	for len(header(n))+8+int(n) > int(size) {
		n--
	}
	text := header(n)
	text += string(bytes.Repeat([]byte(" "), int(size-n)-8-len(text)))
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return File{Path: path, Content: string(head) + text, Size: size, Seed: seed, Large: true}
}
