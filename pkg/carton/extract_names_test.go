package carton

import (
	"errors"
	"testing"
)

func TestNamesThatASystemCannotHold(t *testing.T) {
	for _, c := range []struct {
		goos, path string
		ok         bool
	}{
		{"linux", "model/CON", true},
		{"linux", "model/a:b ", true},
		{"linux", "model/o\u0308", true},
		{"darwin", "model/CON", true},
		{"darwin", "model/ö", true},
		{"darwin", "model/o\u0308", false},
		{"windows", "model/weights.bin", true},
		{"windows", "model/.hidden/a=b", true},
		{"windows", "model/console", true},
		{"windows", "model/com10", true},
		{"windows", "model/o\u0308", true},
		{"windows", "CON/a", false},
		{"windows", "model/con.txt", false},
		{"windows", "model/NUL .tar.gz", false},
		{"windows", "model/lpt1", false},
		{"windows", "model/COM¹", false},
		{"windows", "aux.txt", false},
		{"windows", "model/PRN", false},
		{"windows", "model/conin$", false},
		{"windows", "model/a.", false},
		{"windows", "model/...", false},
		{"windows", "model/a ", false},
		{"windows", "model/a:stream:$DATA", false},
		{"windows", "model/a<b", false},
		{"windows", "model/a|b", false},
		{"windows", "model/*", false},
		{"windows", "model/a /b", false},
		{"windows", "model/a:b", false},
		{"windows", "model/a?", false},
		{"windows", `model/a"b`, false},
	} {
		err := checkLocalName(c.goos, c.path)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInsecurePath) {
			t.Errorf("%s: %q: got %v, want ok %v", c.goos, c.path, err, c.ok)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b/a", true},
		{"a", "a/b", false},
		{"a*", "x/abc", true},
		{"/a", "a", true},
		{"/a", "b/a", false},
		{"a/", "a/b/c", true},
		{"a/", "b/a/c", false},
		{"a/*", "a/b/c", false},
		{"**", "a/b", true},
		{"**/a", "a", true},
		{"**/a", "x/y/a", true},
		{"a/**", "a", true},
		{"a/**", "ab/c", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/y/c", false},
		{"a/**/b/**/c", "a/b/x/b/c", true},
		{"a/x**y/b", "a/xzy/b", true},
	} {
		if got := MatchPath(c.pattern, c.path); got != c.want {
			t.Errorf("%q, %q: got %v, want %v", c.pattern, c.path, got, c.want)
		}
	}
}
