package links_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

// checked is a source that has something to say about what lies in it.
type checked struct {
	carton.Source
	crc     uint32
	framing error
}

func (c checked) CRC(string) (uint32, bool)                  { return c.crc, c.crc != 0 }
func (c checked) CheckFraming(context.Context, string) error { return c.framing }
func (c checked) Findings() []carton.Finding {
	return []carton.Finding{{Path: "model/b", Err: &carton.Error{Msg: "is odd"}}}
}

// A source whose links are followed keeps what it checks and warns of.
func TestAResolvedSourceKeepsItsChecks(t *testing.T) {
	data := []byte("weights")
	p := &places{
		serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": gives(data)},
		sizes: map[string]int64{"https://a/1": int64(len(data))},
	}
	framing := errors.New("bad framing")
	for name, c := range map[string]struct {
		src  checked
		want error
	}{
		"a wrong CRC": {checked{crc: 1}, carton.ErrChecksum},
		"bad framing": {checked{framing: framing}, framing},
	} {
		t.Run(name, func(t *testing.T) {
			c.src.Source = ranged(data, "https://a/1")
			src := links.Resolve(c.src, p)
			out := filepath.Join(t.TempDir(), "out")
			if err := carton.Assemble(t.Context(), out, src, carton.AssembleOptions{}); !errors.Is(err, c.want) {
				t.Errorf("Assemble: got %v, want %v", err, c.want)
			}
			if err := carton.Extract(t.Context(), out, src, carton.ExtractOptions{}); !errors.Is(err, c.want) {
				t.Errorf("Extract: got %v, want %v", err, c.want)
			}
			if got := src.Findings(); len(got) != 1 || got[0].Err.Msg != "is odd" {
				t.Errorf("got the findings %v", got)
			}
		})
	}
}

// Verify reads linked members once their links are followed.
func TestVerifyReadsWhatIsLinked(t *testing.T) {
	data := []byte("weights")
	p := &places{serve: map[string]func(off, n int64) (io.Reader, error){"https://a/1": gives(data)}}
	src := links.Resolve(thin(data, "https://a/1"), p)
	report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{Links: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unread) > 0 || report.Bytes < int64(len(data)) {
		t.Errorf("got %+v, want all read", report)
	}
}
