package errtext_test

import (
	"errors"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func TestLine(t *testing.T) {
	kind := errors.New("is broken")
	for want, got := range map[string]string{
		"a: got 1, want 2: EOF": errtext.Line("a", "got 1, want 2", kind, io.EOF),
		"a: is broken":          errtext.Line("a", "", kind, nil),
		"got 1":                 errtext.Line("", "got 1", kind, nil),
		"EOF":                   errtext.Line("", "", nil, io.EOF),
		"":                      errtext.Line("", "", nil, nil),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	if got := errtext.Causes(io.EOF, nil); len(got) != 1 {
		t.Errorf("got %v, want the kind alone", got)
	}
	if got := errtext.Causes(io.EOF, io.ErrClosedPipe); len(got) != 2 {
		t.Errorf("got %v, want kind and cause", got)
	}
}
