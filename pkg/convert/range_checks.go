package convert

import (
	"context"
	"errors"
	"hash/crc32"
	"io"

	"github.com/carton-oci/carton-oci/internal/iox"
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

// judgedRange reads a range that is a whole member, and ends with io.EOF only if
// checkRanges has nothing against it.
func judgedRange(ctx context.Context, src carton.Source, path string, r io.ReadCloser) io.ReadCloser {
	crc := uint32(0)
	return &iox.Watched{ReadCloser: r, Saw: func(b []byte, err error) error {
		crc = crc32.Update(crc, crc32.IEEETable, b)
		if errors.Is(err, io.EOF) {
			if wrong := checkRanges(ctx, src, path, crc); wrong != nil {
				err = wrong
			}
		}
		return err
	}}
}
