package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{registry.ErrUnsafe, 1},
		{registry.ErrCredentials, 1},
		{registry.ErrTooLarge, 1},
		{&registry.Error{Status: 413}, 1},
		{carton.ErrExist, 1},
		{carton.ErrBusy, 1},
		{carton.ErrLink, 1},
		{layout.ErrTagExists, 1},
		{usagef("push", "got nothing"), 2},
		{location.ErrLocation, 2},
		{path.ErrBadPattern, 2},
		{carton.ErrFormat, 3},
		{carton.ErrVersion, 3},
		{carton.ErrChecksum, 3},
		{carton.ErrInsecurePath, 3},
		{carton.ErrLimit, 3},
		{layout.ErrFormat, 3},
		{layout.ErrDigest, 3},
		{layout.ErrLimit, 3},
		{layout.ErrNotFound, 4},
		{fs.ErrNotExist, 4},
		{registry.ErrUnauthorized, 5},
		{registry.ErrDenied, 5},
		{links.ErrNotAllowed, 5},
		{fs.ErrPermission, 5},
		{context.Canceled, 130},
		{withCode(2, errors.New("anything")), 2},
		{errDifferent, 1},

		// Of two kinds the one that says more about the content counts.
		{errors.Join(fs.ErrNotExist, carton.ErrFormat), 3},
		{errors.Join(carton.ErrLink, links.ErrNotAllowed), 5},
		{errors.Join(carton.ErrChecksum, links.ErrNotAllowed), 3},
		{&carton.Error{Kind: carton.ErrChecksum, Err: fs.ErrNotExist}, 3},
	} {
		err := test.err
		if err != nil {
			err = withHint(fmt.Errorf("verb object: %w", err), "a hint")
		}
		if got := exitCode(err); got != test.want {
			t.Errorf("%v: got %d, want %d", test.err, got, test.want)
		}
	}
}

// Who interrupts a transfer is told that it can be gone on with.
func TestInterruptedKeepsHints(t *testing.T) {
	err := interrupted(hint.With(fmt.Errorf("pull: %w", context.Canceled), "run it again to go on"))
	if got, want := err.Error(), "interrupted"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := hint.Of(err); len(got) != 1 || got[0].String() != "run it again to go on" {
		t.Errorf("got the hints %q", got)
	}
}
