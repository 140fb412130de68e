package httprange

import (
	"net/http"
	"testing"
)

func TestNextPage(t *testing.T) {
	for link, want := range map[string]string{
		`</v2/m/tags/list?n=2&last=b>; rel="next"`:                "n=2&last=b",
		`</v2/m/tags/list?last=a,b>;rel=next`:                     "last=a,b",
		`<https://other.example/x?last=b>; title="x"; REL="Next"`: "last=b",
		`</a?x=1>; rel="prev", </a?x=2>; rel="next"`:              "x=2",
		`</a?x=1>; rel="prev"`:                                    "none",
		`</a?x=1>`:                                                "none",
		`?x=1; rel="next"`:                                        "none",
		`<?x=1; rel="next"`:                                       "none",
		`</a?x=1&y=a%3D>; rel="next"`:                             "x=1&y=a%3D",
		``:                                                        "none",
		`<%zz>; rel="next"`:                                       "none",
	} {
		got, ok := NextPage(http.Header{"Link": {link}})
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", link, got, want)
		}
	}
}
