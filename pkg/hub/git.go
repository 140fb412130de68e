package hub

import (
	"crypto/sha1" // git's own: it tells what is in the list from what is not
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// gitVerifier is the content of a file, whose end is reached only if it has the hash
// that git gives it.
// https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
type gitVerifier struct {
	io.ReadCloser
	file *file
	sum  hash.Hash
}

func newGitVerifier(r io.ReadCloser, f *file) *gitVerifier {
	v := &gitVerifier{r, f, sha1.New()}
	fmt.Fprintf(v.sum, "blob %d\x00", f.size)
	return v
}

func (v *gitVerifier) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.sum.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(v.sum.Sum(nil)); got != v.file.git {
			return n, v.file.errGit(got)
		}
	}
	return n, err
}
