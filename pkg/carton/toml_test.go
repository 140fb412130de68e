package carton_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// A carton.toml of 16 MiB costs memory in proportion, whatever is in it.
func TestTOMLBombs(t *testing.T) {
	testenv.Heavy(t)
	var deep, wide strings.Builder
	name := strings.Repeat("a", 800)
	for i := range 190 {
		fmt.Fprintf(&deep, "k%d%s = 1\n", i, strings.Repeat("."+name, 97))
	}
	for i := range 100_000 {
		fmt.Fprintf(&wide, "[k%d]\n", i)
	}
	for what, toml := range map[string]string{
		"long names, deep":       deep.String(),
		"many tables":            wide.String(),
		"many arrays of tables":  strings.Repeat("[[a]]\n", 2_000_000),
		"many inline tables":     "a = [" + strings.Repeat("{a=1},", 2_000_000) + "]",
		"many values":            "a = [" + strings.Repeat("1,", 8_000_000) + "]",
		"keys in a long header":  "[" + strings.Repeat(name+".", 90) + "a]\n" + wide.String(),
		"brackets never closed":  strings.Repeat("[", 16<<20),
		"braces never closed":    "a = " + strings.Repeat("{a=", 5<<20),
		"dots":                   strings.Repeat("a.", 8<<20),
		"string never closed":    "a = \"" + strings.Repeat("a", 16<<20-10),
		"one long comment":       "#" + strings.Repeat("a", 16<<20-10),
		"one long string, twice": "a = '" + strings.Repeat("a", 8<<20) + "'\na = 1",
	} {
		b := []byte(toml)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := carton.ParseInfo(b)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
			t.Errorf("%s: allocated %d MiB", what, n>>20)
		}
	}
}
