package hint_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// TestHintsAreSafeToCopy: whoever copies a hint into a shell runs what we wrote,
// and nothing that a stranger did.
func TestHintsAreSafeToCopy(t *testing.T) {
	type name string
	for _, test := range []struct {
		arg  any
		want string
	}{
		{"h.io:5000", "h.io:5000"},
		{"modèle/größe.bin", "modèle/größe.bin"},
		{"$(reboot)", "'$(reboot)'"},
		{"a;reboot;x", "'a;reboot;x'"},
		{name("`reboot`"), "'`reboot`'"},
		{"it's", `'it'\''s'`},
		{"a\n\x1b'\\\u202e\U000e0001\xff", `$'a\x0a\x1b\'\\\u202e\U000e0001\xff'`},
		{"", "''"},
		{"=ls", "'=ls'"},
		{"[::1]:5000", "'[::1]:5000'"},
		{hint.Text("in our words; so"), "in our words; so"},
		{errors.New("a; b"), "a; b"},
		{90 * time.Second, "1m30s"},
		{7, "7"},
	} {
		if got := hint.New("do %v", test.arg).String(); got != "do "+test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestQuoteByAShell: a real shell reads back what was quoted.
func TestQuoteByAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		testenv.NotChecked(t, "no bash")
	}
	for _, s := range []string{"a", "$(reboot)", "it's", "a b*?[x]~!", "\x1b[2J\u202e\n\\'", "", "\xff\xfe", "-x", "#x", "{a,b}"} {
		out, err := exec.CommandContext(t.Context(), bash, "-c", "LC_ALL=C.UTF-8; printf %s "+hint.Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q: bash read %q, %v", s, out, err)
		}
	}
}
