package hint_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/google/go-cmp/cmp"
)

func TestHintsSurviveWrappingAndStayOutOfTheText(t *testing.T) {
	err := hint.With(io.ErrUnexpectedEOF, "pull again: it continues")
	err = fmt.Errorf("pull m.carton: %w", err)
	err = hint.With(err, "or use %s", "--force")

	if got, want := err.Error(), "pull m.carton: unexpected EOF"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	want := []string{"or use --force", "pull again: it continues"}
	if diff := cmp.Diff(want, hint.Of(err)); diff != "" {
		t.Error(diff)
	}
}

func TestNoErrorNoHint(t *testing.T) {
	if err := hint.With(nil, "never seen"); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if got := hint.Of(io.EOF); got != nil {
		t.Errorf("got %q, want none", got)
	}
}
