package carton_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const (
	hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestParseLinks(t *testing.T) {
	l, err := carton.ParseLinks([]byte(`# where things are
future = {x = [1]}
version = 1

[urls]
` + hashB + ` = ["https://a/1", 'https://b/2']
"` + hashA + `" = [
  "ftp://c/\u00e9", # judged when it is followed
]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		hashA: {"ftp://c/é"},
		hashB: {"https://a/1", "https://b/2"},
	}
	if diff := cmp.Diff(want, l.URLs); diff != "" {
		t.Error(diff)
	}
}

const linksLine = hashA + ` = ["https://a/1"]`

func linksDoc(version, lines string) string { return version + "\n[urls]\n" + lines }

// brokenLinks are LINKS with one thing wrong, named for it.
var brokenLinks = []struct {
	name, doc string
	kind      error
	want      string // in the error's text
}{
	{"version 0", linksDoc("version = 0", linksLine), carton.ErrVersion, "version is the integer 0"},
	{"version 2", linksDoc("version = 2", linksLine), carton.ErrVersion, "version is the integer 2"},
	{"no version", linksDoc("", linksLine), carton.ErrVersion, "version is nothing"},
	{"version as text", linksDoc(`version = "1"`, linksLine), carton.ErrVersion, `the string "1"`},
	{"version as float", linksDoc("version = 1.0", linksLine), carton.ErrVersion, "version is the float 1"},
	{"version as table", linksDoc("version = {}", linksLine), carton.ErrVersion, "is a table"},
	{"version in capitals", linksDoc("VERSION = 1", linksLine), carton.ErrVersion, "is nothing"},
	{"no TOML", "version = 1\n[urls\n", carton.ErrFormat, "line "},
	{"a control character in the error", "version = 1\n\x1b[2J = 2", carton.ErrFormat, "line "},
	{"a key twice", linksDoc("version = 1", linksLine+"\n"+linksLine), carton.ErrFormat, "line "},
	{"not UTF-8", linksDoc("version = 1", "# \xff"), carton.ErrFormat, "not UTF-8"},
	{"empty", "", carton.ErrVersion, "is nothing"},
	{"no urls", "version = 1", carton.ErrFormat, "no table [urls]"},
	{"urls is a list", `version = 1` + "\n" + `urls = ["https://a"]`, carton.ErrFormat, "no table [urls]"},
	{"URLS in capitals", "version = 1\n[URLS]\n" + linksLine, carton.ErrFormat, "no table [urls]"},
	{"63 digits", linksDoc("version = 1", hashA[1:]+` = ["https://a"]`), carton.ErrFormat, "is not 64 lower-case hex digits"},
	{"65 digits", linksDoc("version = 1", hashA+`a = ["https://a"]`), carton.ErrFormat, "is not 64 lower-case hex digits"},
	{"upper case", linksDoc("version = 1", strings.ToUpper(hashA)+` = ["https://a"]`), carton.ErrFormat, "lower-case"},
	{"not hex", linksDoc("version = 1", hashA[1:]+`g = ["https://a"]`), carton.ErrFormat, "lower-case"},
	{"no URL", linksDoc("version = 1", hashA+` = []`), carton.ErrFormat, "has no URL"},
	{"an empty URL", linksDoc("version = 1", hashA+` = ["https://a", ""]`), carton.ErrFormat, "item 2"},
	{"a number", linksDoc("version = 1", hashA+` = ["https://a", 1]`), carton.ErrFormat, "item 2"},
	{"no list", linksDoc("version = 1", hashA+` = "https://a"`), carton.ErrFormat, "not a list"},
	{"a table", linksDoc("version = 1", hashA+`.x = ["https://a"]`), carton.ErrFormat, "not a list"},
	{"65 URLs", linksDoc("version = 1", hashA+" = ["+strings.Repeat(`"https://a",`, 65)+"]"), carton.ErrLimit, "65 URLs"},
	{"10,000 URLs", linksDoc("version = 1", hashA+" = ["+strings.Repeat(`"https://a",`, 10_000)+"]"), carton.ErrLimit, "10000 URLs"},
	{"deep arrays", linksDoc("version = 1", hashA+" = "+strings.Repeat("[", 10_000)), carton.ErrLimit, "nested too deeply"},
	{"a long dotted key", "a" + strings.Repeat(".a", 100_000) + " = 1", carton.ErrLimit, "nested too deeply"},
	{"a million keys", func() string {
		var b strings.Builder
		for i := range 1_000_000 {
			fmt.Fprintf(&b, "%x=1\n", i)
		}
		return b.String()
	}(), carton.ErrLimit, "line 451001: too many keys"},
	{"too many bytes", "#" + strings.Repeat(" ", carton.MaxLinksBytes), carton.ErrLimit, "may be at most"},
}

func TestParseLinksRefuses(t *testing.T) {
	for _, c := range brokenLinks {
		t.Run(c.name, func(t *testing.T) {
			_, err := carton.ParseLinks([]byte(c.doc))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %v with %q", err, c.kind, c.want)
			}
			if !strings.HasPrefix(err.Error(), "LINKS: ") || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("got the text %q, want one line that names LINKS", err)
			}
		})
	}
}

func TestParseLinksCountsContents(t *testing.T) {
	testenv.Heavy(t)
	var b strings.Builder
	b.WriteString("version = 1\n[urls]\n")
	for i := range carton.MaxMembers + 1 {
		fmt.Fprintf(&b, "%064x = [\"https://a/%d\"]\n", i, i)
	}
	if _, err := carton.ParseLinks([]byte(b.String())); !errors.Is(err, carton.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}

func TestLinksMarshal(t *testing.T) {
	l := &carton.Links{URLs: map[string][]string{
		hashB: {"https://a/1", "https://b/\"\\\n\x7f"},
		hashA: {"https://a/é"},
	}}
	want := `version = 1

[urls]
` + hashA + ` = ["https://a/é"]
` + hashB + ` = ["https://a/1", "https://b/\"\\\u000A\u007F"]
`
	if diff := cmp.Diff(want, string(l.Marshal())); diff != "" {
		t.Error(diff)
	}
	back, err := carton.ParseLinks(l.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, back); diff != "" {
		t.Error(diff)
	}
	if got := string((&carton.Links{}).Marshal()); got != "version = 1\n\n[urls]\n" {
		t.Errorf("got %q for no links", got)
	}
}

// FuzzParseLinks: no input crashes it, every error is of a kind, and what it
// accepts survives being written and read again.
func FuzzParseLinks(f *testing.F) {
	f.Add([]byte("version = 1\n\n[urls]\n" + hashA + " = [\"https://a/1\", \"https://b/2\"]\n"))
	f.Add([]byte("version = 1\nurls." + hashA + " = ['https://a/\\u']\n"))
	f.Add([]byte("version = 2\n[urls]\n"))
	f.Add([]byte("version = 1\nurls = {\"" + hashB + "\" = [\"\\u00e9\\t\"]}\n"))
	f.Add([]byte("version = 1\n[[urls]]\n[x.y]\nz = [[[]]]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := carton.ParseLinks(b)
		if err != nil {
			var e *carton.Error
			if !errors.As(err, &e) || e.Path != carton.LinksName || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %q", err)
			}
			return
		}
		back, err := carton.ParseLinks(l.Marshal())
		if err != nil {
			t.Fatalf("%s\nreads back as %v", l.Marshal(), err)
		}
		if diff := cmp.Diff(l, back); diff != "" {
			t.Fatal(diff)
		}
	})
}
