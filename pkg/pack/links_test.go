package pack_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/google/go-cmp/cmp"
)

func sum(s string) string {
	b := sha256.Sum256([]byte(s))
	return hex.EncodeToString(b[:])
}

func TestLinksMakeAThinCarton(t *testing.T) {
	dir := tree(t, map[string]string{"a.bin": "aaa", "s p/ü.bin": "bbb", "twin.bin": "aaa", "l": "-> a.bin"})
	full := open(t, noop, dir)
	opts := noop
	opts.Links = []pack.Link{
		{Path: "model/a.bin", URL: "https://one.example.com/x?download=true"},
		{URL: "https://two.example.com/repo/main/"},
	}
	c := open(t, opts, dir)
	want := map[string][]string{
		sum("aaa"): {"https://one.example.com/x?download=true", "https://two.example.com/repo/main/a.bin", "https://two.example.com/repo/main/twin.bin"},
		sum("bbb"): {"https://two.example.com/repo/main/s%20p/%C3%BC.bin"},
	}
	if diff := cmp.Diff(want, c.Thin.URLs); diff != "" {
		t.Error(diff)
	}
	if c.Manifest().ModelHash() != full.Manifest().ModelHash() {
		t.Error("links changed the model hash")
	}
	_, name := assemble(t, c)
	src, err := carton.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	members, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]carton.Place{}
	for _, m := range members {
		places[m.Path] = m.Place
	}
	wantPlaces := map[string]carton.Place{
		"carton.toml": carton.PlaceStored, "tensor_data/index.toml": carton.PlaceStored, "model/a.bin": carton.PlaceLinked,
		"model/twin.bin": carton.PlaceLinked, "model/s p/ü.bin": carton.PlaceLinked, "model/l": carton.PlaceLinked,
	}
	if diff := cmp.Diff(wantPlaces, places); diff != "" {
		t.Error(diff)
	}
}

func TestLinksAreChecked(t *testing.T) {
	for text, want := range map[string]pack.Link{
		"https://h/x":                 {URL: "https://h/x"},
		"https://h/x?a=b":             {URL: "https://h/x?a=b"},
		"model/a=https://h/x?a=b":     {Path: "model/a", URL: "https://h/x?a=b"},
		"model/a b.bin=https://h/%20": {Path: "model/a b.bin", URL: "https://h/%20"},
	} {
		got, err := pack.ParseLink(text)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"http://h/x":                             "want https",
		"model/a=http://h/x":                     "want https",
		"model/a":                                "want a URL or PATH=URL",
		"=https://h/x":                           "want a URL or PATH=URL",
		"https://":                               "want https://host/path",
		"https://u:p@h/x":                        "user name",
		"https://h/x?X-Amz-Signature=ab":         "X-Amz-Signature",
		"model/a=https://h/x?sv=1&sig=ab&se=now": "in its query",
		"https://h/x#part":                       "fragment",
	} {
		_, err := pack.ParseLink(text)
		wantOptionError(t, text, err, want)
	}
	opts := noop
	opts.Links = []pack.Link{{Path: "model/none", URL: "https://h/x"}}
	refused(t, opts, pack.ErrOptions, "there is no file model/none to link", tree(t, map[string]string{"a": "x"}))
	opts.Links = []pack.Link{{Path: "carton.toml", URL: "https://h/x"}}
	refused(t, opts, pack.ErrOptions, "links are of files below model/", tree(t, map[string]string{"a": "x"}))
}

// A server that takes the path out of the request finds the file by its name,
// whatever the name is.
func TestLinksOfAwkwardNames(t *testing.T) {
	names := []string{
		"100%.bin", "a%20b.bin", "%", "%2e%2e/x.bin", "a%2Fb.bin", "q?x=1.bin", "n#1.bin", "two words.bin", "a+b.bin", "a&b=c.bin", "ü/é.bin", "日本.bin",
		"semi;colon,comma.bin", "it's(1)!.bin", "a@b:c.bin", "{x}[0]|^`.bin", `"quoted".bin`, "~tilde.bin", "$HOME.bin",
	}
	if runtime.GOOS == "windows" { // where no file has the rest
		names = slices.DeleteFunc(names, func(name string) bool { return strings.ContainsAny(name, `<>:"|?*\`) })
	}
	files := map[string]string{}
	for _, name := range names {
		files[name] = "content of " + name
	}
	dir := tree(t, files)
	for base, at := range map[string]string{
		"https://h.example": "/", "https://h.example/": "/", "https://h.example/a%20b/main": "/a b/main/", "https://h.example/m%25/": "/m%/",
	} {
		opts := noop
		opts.Links = []pack.Link{{URL: base}}
		c := open(t, opts, dir)
		for _, name := range names {
			urls := c.Thin.URLs[sum(files[name])]
			if len(urls) != 1 {
				t.Fatalf("%s: got %v", name, urls)
			}
			u, err := url.Parse(urls[0])
			if err != nil {
				t.Fatal(err)
			}
			if u.Host != "h.example" || u.Path != at+name || u.RawQuery != "" || u.Fragment != "" {
				t.Errorf("%s below %s: got %s, which asks for %q", name, base, urls[0], u.Path)
			}
		}
	}
}
