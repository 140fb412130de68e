package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	limitRow   = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)\\.(Max[A-Za-z]+)` \\| .* \\| (.*) \\|$")
	limitConst = regexp.MustCompile(`(?m)^(?:\t|const )(Max[A-Za-z]+) += ([0-9_]+)(?: << ([0-9]+))?$`)
)

// The table of limits in SECURITY.md is what the packages have.
func TestLimitsOfTheDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range limitRow.FindAllStringSubmatch(string(text), -1) {
		rows[m[1]+"."+m[2]] = m[3]
	}
	limits := map[string]string{}
	for _, pkg := range []string{"pkg/carton", "pkg/links", "pkg/layout", "pkg/modelfile/safetensors", "pkg/modelfile/pt2", "pkg/modelfile/pmf", "pkg/inspect", "pkg/pack", "pkg/modelfile/gguf", "pkg/hub", "pkg/signature", "pkg/policy", "internal/httprange", "internal/zipdir", "internal/jsonstream", "internal/npy"} {
		for _, m := range limitConst.FindAllStringSubmatch(packageSource(t, pkg), -1) {
			n, err := strconv.ParseInt(strings.ReplaceAll(m[2], "_", ""), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			shift, _ := strconv.Atoi(m[3])
			limits[pkg+"."+m[1]] = shown(n<<shift, strings.Contains(m[1], "Bytes") || m[1] == "MaxFileName" || m[1] == "MaxName", m[3] != "")
		}
	}
	if len(limits) < 45 {
		t.Errorf("got %d limits in the source, want 45 and more", len(limits))
	}
	delete(rows, "pkg/carton.MaxLinksItems") // a formula
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if rows[name] != limits[name] {
			t.Errorf("%s: got %q, want %q", name, rows[name], limits[name])
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s is in SECURITY.md and not in the source", name)
	}
}

// shown writes a limit as the document does.
func shown(n int64, bytes, shifted bool) string {
	if shifted {
		for _, u := range []struct {
			name string
			bits int
		}{{"GiB", 30}, {"MiB", 20}} {
			if n%(1<<u.bits) == 0 {
				return fmt.Sprintf("%d %s", n>>u.bits, u.name)
			}
		}
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if bytes {
		digits += " bytes"
	}
	return digits
}

// packageSource returns a package's files without its tests.
func packageSource(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
