package carton_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const someHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParseManifest(t *testing.T) {
	raw := "carton.toml=" + someHash + "\nmodel/a=b=" + someHash + "\nmodel/\u6a21=" + strings.Repeat("0", 64) + "\n"
	m, err := carton.ParseManifest([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Bytes()) != raw {
		t.Errorf("bytes: got %q, want %q", m.Bytes(), raw)
	}
	sum := sha256.Sum256([]byte(raw))
	if got, want := m.ModelHash(), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("model hash: got %s, want %s", got, want)
	}
	want := []carton.Entry{
		{Path: "carton.toml", Hash: someHash, Line: 1},
		{Path: "model/a=b", Hash: someHash, Line: 2},
		{Path: "model/\u6a21", Hash: strings.Repeat("0", 64), Line: 3},
	}
	if !slices.Equal(m.Entries(), want) {
		t.Errorf("got %v, want %v", m.Entries(), want)
	}
	if e, ok := m.Lookup("model/a=b"); !ok || e != want[1] {
		t.Errorf("lookup: got %v, %t; want %v", e, ok, want[1])
	}
	if e, ok := m.Lookup("model/a"); ok {
		t.Errorf("lookup of what is not there: got %v", e)
	}
	if len(m.Warnings()) != 0 {
		t.Errorf("got warnings %q, want none", m.Warnings())
	}
}

// The caller's slice may change afterwards.
func TestParseManifestCopies(t *testing.T) {
	raw := []byte("a=" + someHash + "\n")
	m, err := carton.ParseManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	raw[0] = 'b'
	if m.Bytes()[0] != 'a' || m.Entries()[0].Path != "a" {
		t.Error("the MANIFEST changed with its caller's bytes")
	}
}

func TestManifestThatIsOdd(t *testing.T) {
	line := func(p string) string { return p + "=" + someHash }
	for name, c := range map[string]struct {
		raw  string
		want []string
	}{
		"unsorted":          {line("b") + "\n" + line("a") + "\n", []string{"is not in bytewise order of paths"}},
		"CRLF":              {line("a") + "\r\n" + line("b") + "\r\n", []string{"has CRLF line ends"}},
		"no last newline":   {line("a") + "\n" + line("b"), []string{"does not end with a newline"}},
		"all of it":         {line("b") + "\r\n" + line("a"), []string{"has CRLF line ends", "is not in bytewise order of paths", "does not end with a newline"}},
		"sorted by bytes":   {line("a.b") + "\n" + line("a/b") + "\n" + line("a0") + "\n" + line("b/a") + "\n" + line("\u00e9") + "\n", nil},
		"an = in the path":  {line("=") + "\n", nil},
		"a space in a path": {line("a b ") + "\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := carton.ParseManifest([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			got, want := slices.Sorted(slices.Values(m.Warnings())), slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if string(m.Bytes()) != c.raw {
				t.Errorf("bytes: got %q, want %q", m.Bytes(), c.raw)
			}
		})
	}
}

// brokenManifests are MANIFESTs with one thing wrong, by what that is.
var brokenManifests = map[string]struct {
	raw  string
	want error
	text string
}{
	"empty":                        {"", carton.ErrFormat, "is empty"},
	"not UTF-8":                    {manifestLine("\xff"), carton.ErrFormat, "not UTF-8"},
	"byte order mark":              {"\ufeff" + manifestLine("a"), carton.ErrFormat, "byte order mark"},
	"byte order mark later":        {manifestLine("a") + "\ufeff\n", carton.ErrFormat, "line 2: the line has no ="},
	"blank line":                   {manifestLine("a") + "\n" + manifestLine("b"), carton.ErrFormat, "line 2: the line is blank"},
	"blank last line":              {manifestLine("a") + "\n", carton.ErrFormat, "line 2: the line is blank"},
	"blank line of CRLF":           {manifestLine("a") + "\r\n", carton.ErrFormat, "line 2: the line is blank"},
	"no =":                         {"a " + someHash + "\n", carton.ErrFormat, "line 1: the line has no ="},
	"no path":                      {manifestLine(""), carton.ErrInsecurePath, "line 1: a member has an empty name"},
	"upper-case hash":              {"a=" + strings.ToUpper(someHash) + "\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"hash of 63 digits":            {"a=" + someHash[1:] + "\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"hash of 65 digits":            {"a=" + someHash + "0\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"no hash":                      {"a=\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"hash that is not hex":         {"a=g" + someHash[1:] + "\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"hash with a prefix":           {"a=sha256:" + someHash + "\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"space before the hash":        {"a= " + someHash + "\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"two CRs":                      {"a=" + someHash + "\r\r\n", carton.ErrFormat, "is not 64 lower-case hex digits"},
	"path twice":                   {manifestLine("a") + manifestLine("a"), carton.ErrInsecurePath, "line 2: a: name occurs twice"},
	"path twice with other hashes": {manifestLine("a") + "a=" + strings.Repeat("0", 64) + "\n", carton.ErrInsecurePath, "twice"},
	"paths that differ in case":    {manifestLine("A") + manifestLine("a"), carton.ErrInsecurePath, "only in case"},
	"lists itself":                 {manifestLine("MANIFEST"), carton.ErrFormat, "lists MANIFEST"},
	"lists LINKS":                  {manifestLine("LINKS"), carton.ErrFormat, "lists LINKS"},
	"lists manifest":               {manifestLine("manifest"), carton.ErrInsecurePath, "differs from MANIFEST only in case"},
	"lists a folder MANIFEST":      {manifestLine("MANIFEST/a"), carton.ErrInsecurePath, "which is a file"},
	"traversal":                    {manifestLine("../a"), carton.ErrInsecurePath, "line 1"},
	"absolute path":                {manifestLine("/a"), carton.ErrInsecurePath, "absolute"},
	"control character":            {manifestLine("a\tb"), carton.ErrInsecurePath, "control character"},
	"file that is also a folder":   {manifestLine("a") + manifestLine("a/b"), carton.ErrInsecurePath, "which is a file"},
	"over 22 MiB":                  {strings.Repeat("a", carton.MaxManifestBytes+1), carton.ErrLimit, "23068673 bytes"},
}

func manifestLine(p string) string { return p + "=" + someHash + "\n" }

func TestBrokenManifests(t *testing.T) {
	for name, c := range brokenManifests {
		t.Run(name, func(t *testing.T) {
			_, err := carton.ParseManifest([]byte(c.raw))
			checkError(t, err, c.want, c.text)
			if !strings.HasPrefix(err.Error(), "MANIFEST: ") {
				t.Errorf("%q does not say which file", err)
			}
		})
	}
}

func TestManifestOfTooManyMembers(t *testing.T) {
	testenv.Heavy(t)
	var b strings.Builder
	for i := range carton.MaxMembers + 1 {
		fmt.Fprintf(&b, "%06d=%s\n", i, someHash)
	}
	raw := b.String()
	_, err := carton.ParseManifest([]byte(raw))
	checkError(t, err, carton.ErrLimit, "more than 150000 members")
	if _, err := carton.ParseManifest([]byte(raw[72:])); err != nil {
		t.Errorf("exactly %d members: %v", carton.MaxMembers, err)
	}
}

// A few MB of deep paths must not become many folders in memory.
func TestManifestOfTooManyFolders(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%04d%s/a=%s\n", i, strings.Repeat("/a", 400), someHash)
	}
	_, err := carton.ParseManifest([]byte(b.String()))
	checkError(t, err, carton.ErrLimit, "more than 150000 folders")
}

func TestNewManifest(t *testing.T) {
	m, err := carton.NewManifest([]carton.Entry{{Path: "model/b", Hash: someHash, Line: 7}, {Path: "carton.toml", Hash: someHash}, {Path: "model/a", Hash: someHash}})
	if err != nil {
		t.Fatal(err)
	}
	want := "carton.toml=" + someHash + "\nmodel/a=" + someHash + "\nmodel/b=" + someHash + "\n"
	if string(m.Bytes()) != want {
		t.Errorf("got %q, want %q", m.Bytes(), want)
	}
	for name, e := range map[string]carton.Entry{
		"bad path": {Path: "../a", Hash: someHash}, "bad hash": {Path: "a", Hash: "0"}, "newline": {Path: "a=" + someHash + "\nb", Hash: someHash},
	} {
		if m, err := carton.NewManifest([]carton.Entry{e}); err == nil {
			t.Errorf("%s: got %q, want an error", name, m.Bytes())
		}
	}
}

// FuzzParseManifest: what is accepted keeps its bytes and lists clean, different
// paths; made again from its entries, it lists the same.
func FuzzParseManifest(f *testing.F) {
	for _, raw := range []string{
		"a=" + someHash + "\n", "b=" + someHash + "\r\na=b=" + someHash, "carton.toml=" + someHash + "\nmodel/\u6a21=" + someHash + "\n",
		"", "\n", "\ufeff", "a=" + someHash + "\nA=" + someHash + "\n", "a/b=" + someHash + "\na=" + someHash + "\n", "=" + someHash, "../=" + someHash,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := carton.ParseManifest(raw)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Errorf("%q is no one line", err)
			}
			return
		}
		if string(m.Bytes()) != string(raw) {
			t.Error("the bytes have changed")
		}
		var paths carton.Paths
		for _, e := range m.Entries() {
			if err := paths.Add(e.Path); err != nil {
				t.Error(err)
			}
			if len(e.Hash) != 64 {
				t.Errorf("%s has the hash %q", e.Path, e.Hash)
			}
			if again, ok := m.Lookup(e.Path); !ok || again != e {
				t.Errorf("%s: looked up %v, want %v", e.Path, again, e)
			}
		}
		made, err := carton.NewManifest(m.Entries())
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Warnings()) == 0 && made.ModelHash() != m.ModelHash() {
			t.Errorf("made again, %q became %q", raw, made.Bytes())
		}
	})
}
