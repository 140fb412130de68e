package convert

import (
	"context"
	"errors"
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// checkRanges says what is wrong with a member that was read by ranges alone and has
// its hash: what carton.Source's Open would have found besides. crc is the content's
// CRC-32.
func checkRanges(ctx context.Context, src carton.Source, path string, crc uint32) error {
	if err := src.CheckFraming(ctx, path); err != nil {
		return err
	}
	return carton.CheckCRC(src, path, crc)
}

// wholeRange reads a range that is a whole member, and ends with io.EOF only if
// check has nothing against its CRC-32.
type wholeRange struct {
	io.ReadCloser
	check func(crc uint32) error
	crc   uint32
}

func (r *wholeRange) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.crc = crc32.Update(r.crc, crc32.IEEETable, b[:n])
	if errors.Is(err, io.EOF) {
		if wrong := r.check(r.crc); wrong != nil {
			err = wrong
		}
	}
	return n, err
}
