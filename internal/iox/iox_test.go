package iox_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/iox"
)

var errBroken = errors.New("broken")

func TestExactly(t *testing.T) {
	abc := func() io.Reader { return strings.NewReader("abc") }
	wrapped := fmt.Errorf("late: %w", io.EOF)
	for name, c := range map[string]struct {
		e    iox.Exactly
		want string
		err  error
	}{
		"all":                        {iox.Exactly{R: abc(), N: 3}, "abc", nil},
		"a part":                     {iox.Exactly{R: abc(), N: 2}, "ab", nil},
		"none":                       {iox.Exactly{}, "", nil},
		"too few":                    {iox.Exactly{R: abc(), N: 4}, "abc", io.ErrUnexpectedEOF},
		"an end with data":           {iox.Exactly{R: iotest.DataErrReader(abc()), N: 3}, "abc", nil},
		"an early end with data":     {iox.Exactly{R: iotest.DataErrReader(abc()), N: 4}, "abc", io.ErrUnexpectedEOF},
		"short":                      {iox.Exactly{R: abc(), N: 3, Short: true}, "abc", io.ErrUnexpectedEOF},
		"broken":                     {iox.Exactly{R: io.MultiReader(abc(), iotest.ErrReader(errBroken)), N: 4}, "abc", errBroken},
		"broken behind the end":      {iox.Exactly{R: io.MultiReader(abc(), iotest.ErrReader(errBroken)), N: 3}, "abc", nil},
		"judged":                     {iox.Exactly{R: abc(), N: 3, Judged: true}, "abc", nil},
		"judged to be broken":        {iox.Exactly{R: io.MultiReader(abc(), iotest.ErrReader(errBroken)), N: 3, Judged: true}, "abc", errBroken},
		"a wrapped end is no end":    {iox.Exactly{R: iotest.ErrReader(wrapped), N: 3}, "", wrapped},
		"judged to be over, wrapped": {iox.Exactly{R: iotest.ErrReader(wrapped), Judged: true}, "", wrapped},
	} {
		if got, err := io.ReadAll(&c.e); string(got) != c.want || err != c.err { //nolint:errorlint // it is passed on as it is
			t.Errorf("%s: got %q, %v, want %q, %v", name, got, err, c.want, c.err)
		}
	}
}

func TestSource(t *testing.T) {
	for want, r := range map[error]io.Reader{nil: strings.NewReader("abc"), errBroken: io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errBroken))} {
		s := &iox.Source{R: r}
		if _, err := io.ReadAll(s); err != want || s.Err != want || s.N != 3 { //nolint:errorlint // the same
			t.Errorf("got %v after %d bytes, and %v; want %v", s.Err, s.N, err, want)
		}
	}
}

type closer struct{ err error }

func (c *closer) Close() error { return c.err }

func TestOver(t *testing.T) {
	under := &closer{errBroken}
	o := iox.Over{ReadCloser: iox.ReadCloser{Reader: strings.NewReader("abc"), Closer: &closer{io.ErrClosedPipe}}, Under: under}
	if err := o.Close(); !errors.Is(err, errBroken) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want both", err)
	}
}

func TestWatched(t *testing.T) {
	var saw strings.Builder
	w := &iox.Watched{ReadCloser: io.NopCloser(strings.NewReader("abc")), Saw: func(b []byte, err error) error {
		if saw.Write(b); err == io.EOF { //nolint:errorlint // the end is bare
			return errBroken
		}
		return err
	}}
	if got, err := io.ReadAll(w); string(got) != "abc" || saw.String() != "abc" || !errors.Is(err, errBroken) {
		t.Errorf("got %q, %v, and saw %q", got, err, saw.String())
	}
}
