package errtext_test

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/secret"
)

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"model/größe 模型.bin": "model/größe 模型.bin",
		"a\nb":               `"a\nb"`,
		"\x1b[2J":            `"\x1b[2J"`,
		"\xff":               `"\xff"`,
		"\u202egpj.exe":      `"\u202egpj.exe"`,
	} {
		if got := errtext.Quote(name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestShort: a word is cut between characters, behind the quotes it is said that
// it goes on, and a secret is not shown because it was cut in half.
func TestShort(t *testing.T) {
	const password = "correct-horse-battery"
	secret.Add(password)
	long := strings.Repeat("a", 255)
	for word, want := range map[string][2]string{
		"":                      {`""`, `""`},
		"größe 模型":              {"größe 模型", `"größe 模型"`},
		`say "a", want "b"`:     {`say "a", want "b"`, `"say \"a\", want \"b\""`},
		"a\nb":                  {`"a\nb"`, `"a\nb"`},
		long + "b":              {long + "b", `"` + long + `b"`},
		long + "bc":             {long + "b…", `"` + long + `b"…`},
		long + "ü":              {long + "…", `"` + long + `"…`},
		"\n" + long + "b":       {`"\n` + long + `"…`, `"\n` + long + `"…`},
		long[:250] + password:   {long[:250] + "…", `"` + long[:250] + `…"`},
		"\xff" + long:           {`"\xff` + long + `"`, `"\xff` + long + `"`},
		strings.Repeat("模", 86): {strings.Repeat("模", 85) + "…", `"` + strings.Repeat("模", 85) + `"…`},
	} {
		if got := errtext.Short(word); got != want[0] {
			t.Errorf("Short(%q) = %s, want %s", word, got, want[0])
		}
		if got := errtext.Quoted(word); got != want[1] {
			t.Errorf("Quoted(%q) = %s, want %s", word, got, want[1])
		}
	}
}
