package carton_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

func TestCheckPath(t *testing.T) {
	long := strings.Repeat("a", carton.MaxNameBytes)
	for _, p := range []string{
		"a", "a/b", "model/model.pt", ".hidden", "a/.b/..c", "...", "a b", " ", "a=b", "\u6a21\u578b", "e\u0301", long, long + "/" + long,
		strings.Repeat("a/", carton.MaxPathBytes/2-1) + "ab", "CON", "a:b", "~", "-rf", "\U0001f973",
	} {
		if err := carton.CheckPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/./b", "../a", "a/..", "a/../b", "../..", `a\b`, `\`,
		"a\x00", "a\nb", "a\tb", "\x1b[31m", "a\x7f", "a\u0085b", "a\u2028b", "a\u2029", "\xff", "a\xc3", "\xed\xa0\x80",
		long + "a", "x/" + long + "a", strings.Repeat("a/", carton.MaxPathBytes/2) + "a", strings.Repeat("\u6a21", 400),
	} {
		err := carton.CheckPath(p)
		if !errors.Is(err, carton.ErrInsecurePath) {
			t.Errorf("%q: got %v, want %v", p, err, carton.ErrInsecurePath)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x1b\x00") || len(err.Error()) > 4*carton.MaxPathBytes {
			t.Errorf("%q: the error %q is no short line", p, err)
		}
	}
}

func TestPaths(t *testing.T) {
	for name, c := range map[string]struct {
		add  []string
		text string // "" where all of it is right
	}{
		"different":                  {[]string{"a", "b", "c/d", "c/e", "c/f/g", "ab", "a.b"}, ""},
		"same in other folders":      {[]string{"x/a", "y/a", "z/x/a"}, ""},
		"prefixes":                   {[]string{"ab", "a/b", "abc/d"}, ""},
		"twice":                      {[]string{"a/b", "a/b"}, "occurs twice"},
		"case":                       {[]string{"a/b", "a/B"}, "only in case"},
		"case of a folder":           {[]string{"a/b", "A/c"}, "only in case"},
		"case of an outer folder":    {[]string{"a/b/c", "A/b/d"}, "only in case"},
		"case beyond ASCII":          {[]string{"\u00c4", "\u00e4"}, "only in case"},
		"sharp s":                    {[]string{"stra\u00dfe", "STRASSE"}, "only in case"},
		"final sigma":                {[]string{"\u03c3", "\u03c2"}, "only in case"},
		"Kelvin sign":                {[]string{"\u212a", "k"}, "only in case"},
		"normal forms":               {[]string{"\u00e9", "e\u0301"}, "only in case or normalisation"},
		"normal forms of a folder":   {[]string{"\u00e9/a", "e\u0301/b"}, "only in case or normalisation"},
		"file, then below it":        {[]string{"a", "a/b"}, "lies below a, which is a file"},
		"file, then deep below it":   {[]string{"a", "a/b/c"}, "lies below a, which is a file"},
		"folder, then a file":        {[]string{"a/b", "a"}, "is a file and also the folder of a/b"},
		"outer folder, then a file":  {[]string{"a/b/c", "a"}, "is a file and also the folder"},
		"file below in another case": {[]string{"A", "a/b"}, "which is a file"},
		"no path":                    {[]string{"../a"}, "not clean"},
	} {
		t.Run(name, func(t *testing.T) {
			var paths carton.Paths
			var err error
			for i, p := range c.add {
				if err = paths.Add(p); err != nil && i < len(c.add)-1 {
					t.Fatal(err)
				}
			}
			if c.text != "" {
				checkError(t, err, carton.ErrInsecurePath, c.text)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A path that was refused leaves nothing behind.
func TestPathsAfterAnError(t *testing.T) {
	var paths carton.Paths
	if err := paths.Add("a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		checkError(t, paths.Add("a/b/c"), carton.ErrInsecurePath, "which is a file")
	}
}

// TestPathsCountsBytes: a set of paths does not take more memory than promised.
func TestPathsCountsBytes(t *testing.T) {
	var paths carton.Paths
	long := strings.Repeat(strings.Repeat("a", 200)+"/", 4)
	for i := 0; ; i++ {
		err := paths.Add(fmt.Sprintf("%s%06d", long, i))
		if err == nil && i < carton.MaxNamesBytes/(len(long)+6) {
			continue
		}
		checkError(t, err, carton.ErrLimit, "more than 12582912 bytes")
		return
	}
}

// Deep paths with one folder in common cost what they are long, not more.
// TestPathsKeepsAFolderOnce: the folders around a path are remembered once, and
// not for every path below them.
func TestPathsKeepsAFolderOnce(t *testing.T) {
	const members = 12_000
	var paths carton.Paths
	deep := strings.Repeat("a/", 500)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range members {
		if err := paths.Add(fmt.Sprint(deep, i)); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	// A path is 1 kB, and is kept once; maps grow by doubling.
	if got := (after.TotalAlloc - before.TotalAlloc) / members; got > 8<<10 {
		t.Errorf("got %d bytes allocated for each path, want at most 8 KiB", got)
	}
}

func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*carton.Error{
		"model/a: got 1, want 2: cause":           {Path: "model/a", Kind: carton.ErrFormat, Msg: "got 1, want 2", Err: cause},
		"model/a: breaks the carton format":       {Path: "model/a", Kind: carton.ErrFormat},
		"got 1":                                   {Kind: carton.ErrFormat, Msg: "got 1"},
		`"model/\x1b[2J": got 1`:                  {Path: "model/\x1b[2J", Kind: carton.ErrFormat, Msg: "got 1"},
		`"\xff": got 1`:                           {Path: "\xff", Kind: carton.ErrFormat, Msg: "got 1"},
		"model/\u6a21 \U0001f973: over the limit": {Path: "model/\u6a21 \U0001f973", Kind: carton.ErrLimit},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(e, e.Kind) || e.Err != nil && !errors.Is(e, cause) {
			t.Errorf("%q wraps neither kind nor cause", want)
		}
	}
}

// FuzzPaths: what a set of paths accepts could be made in a folder.
func FuzzPaths(f *testing.F) {
	f.Add("a/b\na/c\nA")
	f.Add("a\na/b")
	f.Add("\u00e9/a\ne\u0301/b")
	f.Fuzz(func(t *testing.T, list string) {
		var paths carton.Paths
		names := map[string]bool{}
		for p := range strings.SplitSeq(list, "\n") {
			if paths.Add(p) != nil {
				continue
			}
			if carton.CheckPath(p) != nil {
				t.Errorf("%q was added", p)
			}
			if key := strings.ToLower(p); names[key] {
				t.Errorf("%q was added twice", p)
			} else {
				names[key] = true
			}
			for dir := p; strings.Contains(dir, "/"); {
				dir = dir[:strings.LastIndexByte(dir, '/')]
				if names[strings.ToLower(dir)] {
					t.Errorf("%q lies below a file", p)
				}
			}
		}
	})
}
