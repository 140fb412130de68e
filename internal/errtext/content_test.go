package errtext_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

func TestContent(t *testing.T) {
	kind, other := errtext.Content("is wrong"), errtext.Content("is wrong")
	err := fmt.Errorf("model/a: %w", errors.Join(errors.New("x"), kind))
	if !errtext.IsContent(err) || !errors.Is(err, kind) || errors.Is(err, other) || kind.Error() != "is wrong" {
		t.Errorf("got %v: IsContent %v", err, errtext.IsContent(err))
	}
	for _, err := range []error{nil, errors.New("is wrong")} {
		if errtext.IsContent(err) {
			t.Errorf("%v: got true", err)
		}
	}
}
