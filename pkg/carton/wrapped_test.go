package carton_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// wrapped is a source as anybody may wrap one: to count, to log.
type wrapped struct{ carton.Source }

// A source that wraps another, for whatever reason, keeps what that one checks and warns of.
func TestAWrappedSourceKeepsItsChecks(t *testing.T) {
	z := zipOf("model/a", "weights", "model/gr\u00f6\u00dfe", "a", carton.InfoName, minimalInfo, carton.IndexName, emptyIndex)
	z.file("model/a").both(func(h *rawHeader) { h.crc++ })
	z.file("model/gr\u00f6\u00dfe").both(func(h *rawHeader) { h.flags = 0 })
	b := z.bytes()
	for name, wrap := range map[string]func(carton.Source) carton.Source{
		"as it is": func(s carton.Source) carton.Source { return s },
		"wrapped":  func(s carton.Source) carton.Source { return wrapped{wrapped{s}} },
	} {
		t.Run(name, func(t *testing.T) {
			zip, err := carton.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			src := wrap(zip)
			out := filepath.Join(t.TempDir(), "out.carton")
			if err := carton.Assemble(t.Context(), out, src, carton.AssembleOptions{}); !errors.Is(err, carton.ErrChecksum) {
				t.Errorf("Assemble: got %v, want %v", err, carton.ErrChecksum)
			}
			if err := carton.Extract(t.Context(), out, src, carton.ExtractOptions{}); !errors.Is(err, carton.ErrChecksum) {
				t.Errorf("Extract: got %v, want %v", err, carton.ErrChecksum)
			}
			report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sameFindings(t, "Verify", report.Findings, []string{
				"warning: model/gr\u00f6\u00dfe: name is not ASCII, and the zip does not mark it",
				"error: model/a: got CRC",
			})
		})
	}
}
