package hub

import (
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
)

// What a list of files is read as can be asked for: every file has one hash that is
// one, and a size.
func FuzzReadPage(f *testing.F) {
	git, large := strings.Repeat("a", 40), strings.Repeat("b", 64)
	for _, text := range []string{
		`[]`, `{}`, `[{"type":"directory","path":"a","oid":"` + git + `"}]`,
		`[{"type":"file","path":"a","size":1,"oid":"` + git + `"}]`,
		`[{"type":"file","path":"a","size":1,"oid":"` + git + `","lfs":{"oid":"` + large + `","size":1,"pointerSize":120},"xetHash":"x"}]`,
		`[{"type":"file","path":"a","size":1,"oid":"` + git + `","lfs":null,"lastCommit":{"id":"x"}}]`,
		`[{"type":"file","path":"a","path":"b","size":1e9}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &Snapshot{}
		if s.readPage(body, &tree{seen: map[string]bool{}}) != nil {
			return
		}
		for _, x := range s.files {
			if x.path == "" || x.size < 0 || x.size > maxFile || sha256hex.Is(x.hash) == hubname.IsCommit(x.git) {
				t.Fatalf("got the file %q of %d bytes with the hashes %q and %q", x.path, x.size, x.hash, x.git)
			}
		}
	})
}

// Whatever a limit's header says, the wait is a number.
func FuzzLimitEnds(f *testing.F) {
	for _, text := range []string{`"api";r=0;t=55`, `"resolvers";r=2999;t=172, "api";r=1;t=3`, "t=1", `"a";t=-1`, `"a";t=99999999999999999999`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := limitEnds([]string{text}); n < 0 || ok != (n > 0) {
			t.Fatalf("got %d, %v", n, ok)
		}
	})
}
