package registry

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// tagged is a registry with so many tags.
func tagged(t *testing.T, n int, quirks registrytest.Quirks) *registrytest.Registry {
	t.Helper()
	reg := registrytest.New(t, registrytest.Config{Quirks: quirks})
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf("v%05d", i)
	}
	reg.AddManifest("org/m", desc.MediaType, content, tags...)
	return reg
}

func TestTags(t *testing.T) {
	for name, c := range map[string]struct {
		quirks registrytest.Quirks
		asks   int
	}{
		"pages of a thousand":       {asks: 3},
		"pages of a hundred":        {quirks: registrytest.Quirks{TagsPage: 100}, asks: 25},
		"a whole address":           {quirks: registrytest.Quirks{NextLink: func(s string) string { return "https://registry.example" + s }}, asks: 3},
		"an address behind a proxy": {quirks: registrytest.Quirks{NextLink: func(s string) string { return "http://10.0.0.1:5000/artifactory" + s }}, asks: 3},
		"a query alone":             {quirks: registrytest.Quirks{NextLink: func(s string) string { return s[strings.IndexByte(s, '?'):] }}, asks: 3},
	} {
		t.Run(name, func(t *testing.T) {
			reg := tagged(t, 2500, c.quirks)
			n := 0
			for tag, err := range dial(t, reg, "org/m", Options{}).Tags(t.Context()) {
				if err != nil || tag != fmt.Sprintf("v%05d", n) {
					t.Fatalf("got %q, %v, want v%05d", tag, err, n)
				}
				n++
			}
			if asks := reg.Count("GET", "/tags/list"); n != 2500 || asks != c.asks {
				t.Errorf("got %d tags in %d requests, want 2500 in %d", n, asks, c.asks)
			}
		})
	}
}

// Nothing is asked for that nobody wants.
func TestTagsAreAskedForAsTheyAreTaken(t *testing.T) {
	reg := tagged(t, 30, registrytest.Quirks{TagsPage: 10})
	n := 0
	for range dial(t, reg, "org/m", Options{}).Tags(t.Context()) {
		if n++; n == 15 {
			break
		}
	}
	if asks := reg.Count("GET", "/tags/list"); asks != 2 {
		t.Errorf("got %d requests, want 2", asks)
	}
}

func TestTagsFail(t *testing.T) {
	maxPages = 50
	t.Cleanup(func() { maxPages = 10_000 })
	turn := atomic.Int64{}
	for name, c := range map[string]struct {
		quirks registrytest.Quirks
		answer string // in the place of the first page
		status int
		kind   error
		says   string
	}{
		"a page that is the next one":   {quirks: registrytest.Quirks{TagsPage: 1, NextLink: func(string) string { return "/v2/org/m/tags/list?n=1000" }}, kind: layout.ErrFormat, says: "a page that was read"},
		"two pages in turn":             {quirks: registrytest.Quirks{TagsPage: 1, NextLink: func(string) string { return fmt.Sprint("?y=", turn.Add(1)%2) }}, kind: layout.ErrFormat, says: "a page that was read"},
		"no query":                      {quirks: registrytest.Quirks{TagsPage: 1, NextLink: func(string) string { return "/v2/org/m/tags/list" }}, kind: layout.ErrFormat, says: "a page that was read"},
		"pages without end":             {quirks: registrytest.Quirks{TagsPage: 1, NextLink: func(string) string { return fmt.Sprint("?x=", turn.Add(1)) }}, kind: layout.ErrLimit, says: "more than 50 pages"},
		"no JSON":                       {answer: "<html>", kind: layout.ErrFormat, says: "no list of tags"},
		"no list":                       {answer: `{"tags":{}}`, kind: layout.ErrFormat, says: "no list of tags"},
		"numbers":                       {answer: `{"tags":[1]}`, kind: layout.ErrFormat, says: "no list of tags"},
		"a path":                        {answer: `{"tags":["../../x"]}`, kind: layout.ErrFormat, says: `"../../x" is no tag`},
		"a line of a terminal's":        {answer: `{"tags":["a\u001b[2Jb"]}`, kind: layout.ErrFormat, says: "is no tag"},
		"tags twice, and the first bad": {answer: `{"tags":["/"],"tags":["a"]}`, kind: layout.ErrFormat, says: "is no tag"},
		"too large":                     {answer: `{"tags":[` + strings.Repeat(" ", maxPageBytes) + `]}`, kind: layout.ErrLimit, says: "got over"},
		"too many":                      {answer: `{"tags":["a"` + strings.Repeat(`,"a"`, layout.MaxTags) + `]}`, kind: layout.ErrLimit, says: "more than 1000000 tags"},
		"no such repository":            {answer: `{"errors":[{"code":"NAME_UNKNOWN"}]}`, status: 404, kind: layout.ErrNotFound, says: "404"},
		"denied":                        {status: 403, kind: ErrDenied, says: "403"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := tagged(t, 5, c.quirks)
			if c.answer != "" || c.status != 0 {
				reg.Break(registrytest.Fault{Path: "/tags/list", Times: -1, Effect: registrytest.Answer(max(c.status, 200), c.answer, "Content-Type", "application/json")})
			}
			var last error
			for _, err := range dial(t, reg, "org/m", Options{}).Tags(t.Context()) {
				if last != nil {
					t.Fatal("something follows an error")
				}
				last = err
			}
			checkError(t, last, c.kind, c.says, "")
			for _, r := range reg.Requests() {
				if r.Path != "/v2/" && r.Path != "/v2/org/m/tags/list" {
					t.Errorf("it asked for %s", r.Path)
				}
			}
		})
	}
}

// Some registries have no tags to tell of, and say null.
func TestTagsOfNothing(t *testing.T) {
	reg := tagged(t, 1, registrytest.Quirks{})
	reg.Break(registrytest.Fault{Path: "/tags/list", Effect: registrytest.Answer(http.StatusOK, `{"name":"org/m","tags":null}`)})
	for tag, err := range dial(t, reg, "org/m", Options{}).Tags(t.Context()) {
		t.Errorf("got %q, %v", tag, err)
	}
}

func TestDelete(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	refused := `{"errors":[{"code":"UNSUPPORTED","message":"The operation is unsupported."}]}`
	for name, c := range map[string]struct {
		quirks    registrytest.Quirks
		reference string
		break_    *registrytest.Fault
		kind      error // nil: it is deleted
		says      string
	}{
		"a tag":                      {reference: "1"},
		"a digest":                   {reference: desc.Digest.String()},
		"no such tag":                {reference: "2", kind: layout.ErrNotFound, says: "tag 2"},
		"no such digest":             {reference: testDigest, kind: layout.ErrNotFound, says: testDigest},
		"deletes nothing":            {reference: desc.Digest.String(), quirks: registrytest.Quirks{NoDelete: 405}, kind: layout.ErrUnsupported, says: "405"},
		"deletes no tags, 400":       {reference: "1", quirks: registrytest.Quirks{NoTagDelete: 400}, kind: layout.ErrUnsupported, says: "400"},
		"deletes no tags, 405":       {reference: "1", quirks: registrytest.Quirks{NoTagDelete: 405}, kind: layout.ErrUnsupported, says: "405"},
		"not a digest to it":         {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Effect: registrytest.Answer(400, `{"errors":[{"code":"DIGEST_INVALID"}]}`)}, kind: layout.ErrUnsupported, says: "digest invalid"},
		"says so in words":           {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Effect: registrytest.Answer(405, refused)}, kind: layout.ErrUnsupported, says: "The operation is unsupported."},
		"not this account":           {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Effect: registrytest.Answer(403, "")}, kind: ErrDenied, says: "403"},
		"answers 200":                {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Effect: registrytest.Answer(200, "")}},
		"a lost answer":              {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Effect: registrytest.LoseAnswer}},
		"a registry that is busy":    {reference: "1", break_: &registrytest.Fault{Methods: "DELETE", Times: 3, Effect: registrytest.Answer(503, "")}},
		"neither a tag nor a digest": {reference: "a/b", kind: ErrReference, says: "a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: c.quirks, Auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true}})
			reg.AddManifest("org/m", desc.MediaType, content, "1")
			if c.break_ != nil {
				reg.Break(*c.break_)
			}
			err := dial(t, reg, "org/m", Options{Credential: static("u", "p")}).Delete(t.Context(), c.reference, layout.DeleteOptions{})
			if c.kind != nil {
				checkError(t, err, c.kind, c.says, "")
				if _, _, there := reg.Manifest("org/m", "1"); !there {
					t.Error("it is gone")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, _, there := reg.Manifest("org/m", c.reference); there && name != "answers 200" {
				t.Error("it is there")
			}
		})
	}
}

// A manifest that a tag points to stays where that is asked for.
func TestDeleteKeepsTagged(t *testing.T) {
	reg := tagged(t, 20, registrytest.Quirks{TagsPage: 3})
	repo := dial(t, reg, "org/m", Options{})
	dgst, _, _ := reg.Manifest("org/m", "v00000")
	err := repo.Delete(t.Context(), dgst.String(), layout.DeleteOptions{KeepTagged: true})
	checkError(t, err, layout.ErrTagExists, "and 10 more", "")
	if n := reg.Count("DELETE", "/"); n != 0 {
		t.Errorf("got %d deletions", n)
	}
	tags, whole, err := layout.TagsOf(t.Context(), repo, dgst)
	if len(tags) != 20 || !whole || err != nil {
		t.Errorf("got %d tags, %v, %v", len(tags), whole, err)
	}
	many := dial(t, tagged(t, 1001, registrytest.Quirks{}), "org/m", Options{})
	if tags, whole, err := layout.TagsOf(t.Context(), many, dgst); len(tags) != 0 || whole || err != nil {
		t.Errorf("of too many: got %d tags, %v, %v", len(tags), whole, err)
	}
	if !errors.Is(many.Delete(t.Context(), dgst.String(), layout.DeleteOptions{KeepTagged: true}), layout.ErrTagExists) {
		t.Error("a manifest of which nobody knows the tags is deleted")
	}
}
