package carton

import (
	"context"
	"os"

	"github.com/carton-oci/carton-oci/internal/localfile"
)

// Open opens the carton at name: a zip, or the folder that one was unpacked
// to. Only the zip's directory and headers (or the folder's listings), MANIFEST
// and LINKS are read, whatever the size. A name that does not exist is
// fs.ErrNotExist; for what can be wrong with the rest see [NewReader] and
// [OpenDir].
func Open(name string) (Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return OpenDir(name)
	}
	if !info.Mode().IsRegular() {
		return nil, errorf(ErrFormat, "", "%s is neither a file nor a folder", quotePath(name))
	}
	f, err := localfile.Open(name)
	if err != nil {
		return nil, err
	}
	z, err := openFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return z, nil
}

func openFile(f *os.File) (*Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := NewReader(f, info.Size())
	if err != nil {
		return nil, err
	}
	z.closer = f
	return z, nil
}

// ReadMember returns a member's whole content, verified. Content of more than
// limit bytes is ErrLimit; for other errors see [Source] Open.
func ReadMember(ctx context.Context, src Source, path string, limit int64) ([]byte, error) {
	r, err := src.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readAtMost(r, path, limit)
}
