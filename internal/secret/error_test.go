package secret_test

import (
	"errors"
	"testing"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// TestError: queries and user info never get into a text.
func TestError(t *testing.T) {
	for in, want := range map[string]string{
		`Get "https://s3.example/x?X-Amz-Signature=abc": EOF`: `Get "https://s3.example/x?…": EOF`,
		`https://u:p@host/x?a=b and http://h/?c next`:         `https://…@host/x?… and http://h/?… next`,
		"plain":        "plain",
		"two\nlines":   "two lines",
		"esc\x1b[31m!": "esc [31m!",
		`Put "https://host:5000/v2/a/blobs/uploads/1?_state=s%20t": write`: `Put "https://host:5000/v2/a/blobs/uploads/1?…": write`,
	} {
		if got := secret.Error(errors.New(in)).Error(); got != want {
			t.Errorf("Error(%q) = %q, want %q", in, got, want)
		}
	}
}
