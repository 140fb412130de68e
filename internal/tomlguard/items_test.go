package tomlguard_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/tomlguard"
)

func TestItemsAreWhatCostsMemory(t *testing.T) {
	long := strings.Repeat("n", 1100)
	for name, c := range map[string]struct {
		in   string
		want int
	}{
		"nothing":           {"", 0},
		"a key":             {"a = 1\n", 1},
		"a dotted key":      {"a.b.c = 1\n", 3},
		"a header":          {"[a.b]\n", 2},
		"an array of table": {"[[a]]\n", 2},
		"an array":          {"a = [1, 2, 3]\n", 4},
		"inline tables":     {"a = [{b = 1}, {}]\n", 6},
		"a string":          {"a = \"[=,{.\"\n", 1},
		"a long string":     {"a = \"\"\"\n[=,\n{.\"\"\"\n", 1},
		"three levels":      {"[a.b.c]\nd = 1\n", 4},
		"a deep key":        {"a.b.c.d.e.f = 1\n", 8},
		"a deep array":      {"a = [[[[[1]]]]]\n", 7},
		"a long name":       {"[" + long + ".b]\nc = 1\n", 2 + 1 + 2*2},
		"names around":      {long + " = {a = [" + long + "]}\n", 4 + 4*2},
		"a long value":      {"a = \"" + long + "\"\nb = 1\n", 2},
		"a comment":         {"a = 1 # [=,{.\nb = 2\n", 2},
	} {
		if err := tomlguard.Check([]byte(c.in), math.MaxInt, c.want); err != nil {
			t.Errorf("%s: at most %d: %v", name, c.want, err)
		}
		if c.want == 0 {
			continue
		}
		if err := tomlguard.Check([]byte(c.in), math.MaxInt, c.want-1); !errors.Is(err, tomlguard.ErrItems) {
			t.Errorf("%s: at most %d: got %v, want %v", name, c.want-1, err, tomlguard.ErrItems)
		}
	}
}

func TestItemsSurviveAnyNesting(t *testing.T) {
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = '['
	}
	if err := tomlguard.Check(deep, math.MaxInt, 1000); !errors.Is(err, tomlguard.ErrItems) {
		t.Errorf("got %v, want %v", err, tomlguard.ErrItems)
	}
}
