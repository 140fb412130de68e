package hint_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

func TestHintsSurviveWrappingAndStayOutOfTheText(t *testing.T) {
	err := hint.With(io.ErrUnexpectedEOF, "pull again: it continues")
	err = fmt.Errorf("pull m.carton: %w", err)
	err = hint.With(err, "or use %s on %s", hint.Force, "a b")

	if got, want := err.Error(), "pull m.carton: unexpected EOF"; got != want {
		t.Errorf("text: got %q, want %q", got, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	flags := map[hint.Name]string{hint.Force: "--force"}
	for i, want := range []struct{ library, command string }{
		{"or use client.PullOptions.Force on 'a b'", "or use --force on 'a b'"},
		{"pull again: it continues", "pull again: it continues"},
	} {
		if h := hint.Of(err)[i]; h.String() != want.library || h.Text(flags) != want.command {
			t.Errorf("got %q and %q, want %q", h, h.Text(flags), want)
		}
	}
	if got := hint.Of(err)[0].Names(); !slices.Equal(got, []hint.Name{hint.Force}) {
		t.Errorf("got the names %q, want Force", got)
	}
	if other := hint.Add(hint.With(io.EOF, "last"), hint.Of(err)...); fmt.Sprint(hint.Of(other)) != fmt.Sprint(append(hint.Of(err), hint.New("last"))) {
		t.Errorf("got %q", hint.Of(other))
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
