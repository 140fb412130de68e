package location

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/google/go-cmp/cmp"
)

const aDigest = "sha256:f1cae5143a92a44e3a7e1d9c32a0245065dfb6e0f1e91c18b5e44356d081dfb5"

func TestWhatIsWhat(t *testing.T) {
	t.Chdir(t.TempDir())
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{"here", "dir.with.dots/m", "with:colon"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for s, want := range map[string]Location{
		// Prefixes come first, whatever follows.
		"oci:dir:1":                 {Kind: KindLayout, Path: "dir", Tag: "1"},
		"oci:dir":                   {Kind: KindLayout, Path: "dir"},
		"oci:./a/b.carton:v1.2-x_y": {Kind: KindLayout, Path: "./a/b.carton", Tag: "v1.2-x_y"},
		"oci:dir@" + aDigest:        {Kind: KindLayout, Path: "dir", Digest: aDigest},
		"oci:dir:1@" + aDigest:      {Kind: KindLayout, Path: "dir", Tag: "1", Digest: aDigest},
		"oci:a@b/c:1":               {Kind: KindLayout, Path: "a@b/c", Tag: "1"},
		"oci:a:b/c":                 {Kind: KindLayout, Path: "a:b/c"},
		"oci:a:b/c:1":               {Kind: KindLayout, Path: "a:b/c", Tag: "1"},
		`oci:C:\layout:1`:           {Kind: KindLayout, Path: `C:\layout`, Tag: "1"},
		"oci:~/layout:1":            {Kind: KindLayout, Path: filepath.Join(home, "layout"), Tag: "1"},
		"https://h/m.carton?x=1":    {Kind: KindURL, URL: "https://h/m.carton?x=1"},

		// A tar of an image layout.
		"oci-archive:m.tar:1":            {Kind: KindArchive, Path: "m.tar", Tag: "1"},
		"oci-archive:/a/m":               {Kind: KindArchive, Path: "/a/m"},
		"oci-archive:5000/m.tar":         {Kind: KindArchive, Path: "5000/m.tar"},
		"oci-archive:~/m.tar@" + aDigest: {Kind: KindArchive, Path: filepath.Join(home, "m.tar"), Digest: aDigest},
		"oci-archive:oci:m.oci.tar":      {Kind: KindArchive, Path: "oci", Tag: "m.oci.tar"},
		"oci-archive:a:b/m.oci.tar":      {Kind: KindArchive, Path: "a:b/m.oci.tar"},
		"m.oci.tar":                      {Kind: KindArchive, Path: "m.oci.tar"},
		"m.oci.tar:1":                    {Kind: KindArchive, Path: "m.oci.tar", Tag: "1"},
		"./a/m.oci.tar@" + aDigest:       {Kind: KindArchive, Path: "./a/m.oci.tar", Digest: aDigest},
		"~/m.oci.tar:1@" + aDigest:       {Kind: KindArchive, Path: filepath.Join(home, "m.oci.tar"), Tag: "1", Digest: aDigest},
		"ghcr.io/org/m.oci.tar:1":        {Kind: KindArchive, Path: "ghcr.io/org/m.oci.tar", Tag: "1"},
		"oci://ghcr.io/org/m.oci.tar:1":  {Kind: KindRegistry, Registry: "ghcr.io", Repository: "org/m.oci.tar", Tag: "1"},
		"oci:m.oci.tar:1":                {Kind: KindLayout, Path: "m.oci.tar", Tag: "1"},
		"m.oci.tar/x.carton":             {Path: "m.oci.tar/x.carton"},

		// The spelling of Helm, Flux and KServe is a registry to everybody.
		"oci://ghcr.io/org/m:1":                              {Kind: KindRegistry, Registry: "ghcr.io", Repository: "org/m", Tag: "1"},
		"OCI://localhost:5000/org/m:1":                       {Kind: KindRegistry, Registry: "localhost:5000", Repository: "org/m", Tag: "1"},
		"oci://h.io/m@" + aDigest:                            {Kind: KindRegistry, Registry: "h.io", Repository: "m", Digest: aDigest},
		"oci://h.io/m.carton":                                {Kind: KindRegistry, Registry: "h.io", Repository: "m.carton"},
		"oci:/abs/lay:1":                                     {Kind: KindLayout, Path: "/abs/lay", Tag: "1"},
		"HTTPS://h/m.carton":                                 {Kind: KindURL, URL: "https://h/m.carton"},
		"https://huggingface.co/org/m/resolve/main/m.carton": {Kind: KindURL, URL: "https://huggingface.co/org/m/resolve/main/m.carton"},
		// A hub's repository, as its own tools and others write it.
		"hf:org/m":              {Kind: KindHub, Repository: "org/m"},
		"hf:gpt2":               {Kind: KindHub, Repository: "gpt2"},
		"hf://org/m":            {Kind: KindHub, Repository: "org/m"},
		"HF:org/m@refs/pr/1":    {Kind: KindHub, Repository: "org/m", Revision: "refs/pr/1"},
		"hf:org/m.carton@v1":    {Kind: KindHub, Repository: "org/m.carton", Revision: "v1"},
		"hf:models/org/m@a@b.c": {Kind: KindHub, Repository: "org/m", Revision: "a@b.c"},
		// A host may be called like a transport.
		"dir:5000/m:1": {Kind: KindRegistry, Registry: "dir:5000", Repository: "m", Tag: "1"},

		// Then what looks like a path.
		"./m":                     {Path: "./m"},
		"../ghcr.io/org/m":        {Path: "../ghcr.io/org/m"},
		"/abs/ghcr.io/m:1":        {Path: "/abs/ghcr.io/m:1"},
		".":                       {Path: "."},
		"~/m":                     {Path: filepath.Join(home, "m")},
		"~other/m":                {Path: "~other/m"},
		"m.carton":                {Path: "m.carton"},
		"ghcr.io/org/m.carton":    {Path: "ghcr.io/org/m.carton"},
		"localhost:5000/m.carton": {Path: "localhost:5000/m.carton"},

		// Then what looks like a host.
		"ghcr.io/org/m:1":     {Kind: KindRegistry, Registry: "ghcr.io", Repository: "org/m", Tag: "1"},
		"ghcr.io/org/m":       {Kind: KindRegistry, Registry: "ghcr.io", Repository: "org/m"},
		"localhost/m:1":       {Kind: KindRegistry, Registry: "localhost", Repository: "m", Tag: "1"},
		"localhost:5000/m:1":  {Kind: KindRegistry, Registry: "localhost:5000", Repository: "m", Tag: "1"},
		"127.0.0.1:5000/a/b":  {Kind: KindRegistry, Registry: "127.0.0.1:5000", Repository: "a/b"},
		"h.io/m@" + aDigest:   {Kind: KindRegistry, Registry: "h.io", Repository: "m", Digest: aDigest},
		"h.io/m:1@" + aDigest: {Kind: KindRegistry, Registry: "h.io", Repository: "m", Tag: "1", Digest: aDigest},
		// Even where a folder has that name: a reference means the same everywhere.
		"dir.with.dots/m": {Kind: KindRegistry, Registry: "dir.with.dots", Repository: "m"},

		// Then what exists.
		"here":       {Path: "here"},
		"with:colon": {Path: "with:colon"},
	} {
		got, err := Parse(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", s, diff)
		}
		again, err := Parse(got.String())
		if err != nil || again != got {
			t.Errorf("%s: its String, %q, reads as %+v, %v", s, got, again, err)
		}
	}
}

func TestNoLocation(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, s := range []string{
		"", "missing", "org/m:1", "http://h/m.carton", "https:", "https://", "https:h/m",
		"hf:", "hf:../m", "hf:a/b/c", "hf:datasets/org/d", "hf:spaces/org/s", "hf:org/m:1", "hf:org/m@", "hf:org/m@..", "hf:org/m@a b", "hf:org/m?x=1",
		"oci:", "oci::1", "oci:dir:", "oci:dir:a b", "oci:dir@sha256:abc", "oci:dir@sha512:" + strings.Repeat("a", 128),
		"oci:dir@SHA256:" + strings.Repeat("a", 64) + ":1@sha256:" + strings.Repeat("A", 64),
		"oci-archive:", "oci-archive::1", "oci-archive:m.tar:@0", "m.oci.tar:", "m.oci.tar:a b", "m.oci.tar@sha256:abc", "m.oci.tar:1@sha512:a",
		"h.io/", "h.io/M:1", "h.io/m@sha256:abc", "h.io/m:", "h.io/../m",
	} {
		if got, err := Parse(s); !errors.Is(err, ErrLocation) {
			t.Errorf("%q: got %+v, %v, want ErrLocation", s, got, err)
		}
	}
}

// What other programs call a place is refused, with a hint that is true.
func TestOtherProgramsNamesOfPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	for s, want := range map[string]string{
		"docker://ghcr.io/org/m:1":           "write ghcr.io/org/m:1",
		"DOCKER://ghcr.io/org/m:1":           "write ghcr.io/org/m:1",
		"docker://alpine":                    "write host/repository:TAG for a registry, without docker://",
		"docker://user:secret@ghcr.io/org/m": "write host/repository:TAG for a registry, without docker://",
		"oras://h.io/m:1":                    "write h.io/m:1",
		"oci:///HOST/org/m:1":                "oci:/DIR:TAG",
		"oci://user:secret@h.io/m:1":         "registry.Client.Login",
		"oci-layout:/tmp/m:1":                "oci:DIR:TAG",
		"docker-archive:m.tar":               "skopeo copy",
		"docker-daemon:m:1":                  "skopeo copy",
		"containers-storage:m:1":             "skopeo copy",
		"dir:/tmp/m":                         "skopeo copy",
		"huggingface://org/m":                "hf:ORG/NAME",
		"https://huggingface.co/org/m":       "write hf:org/m ",
		"https://hf.co/org/m/tree/v1":        "write hf:org/m@v1 ",
		"hf:https://huggingface.co/org/m":    "write hf:org/m ",
		"hf.co/org/m":                        "write hf:org/m ",
		"hf.co/org/m:Q4_K_M":                 "write hf:org/m for the repository; pack.Options.Exclude '*' pack.Options.Include '*Q4_K_M*' takes",
		"www.huggingface.co/org/m:latest":    "write hf:org/m ",
		"oci://huggingface.co/a/b/c:1":       "hf:ORG/NAME",
		"org/m":                              "write hf:org/m",
		"org/m@v1":                           "write hf:org/m@v1",

		"https://huggingface.co/org/m/resolve/main/a%20b/m.gguf?download=true": "hf:org/m@main for the repository; pack.Options.Exclude '*' pack.Options.Include 'a b/m.gguf'",
		"https://huggingface.co/org/m/blob/main/m.carton":                      "write https://huggingface.co/org/m/resolve/main/m.carton ",
		"s3://bucket/m.carton":                     "https://",
		"gs://bucket/m.carton?token=secret":        "https://",
		"file:///tmp/m.carton":                     "the path alone",
		"oci+native://h.io/m:1":                    "host/repository:TAG",
		"ftp://user:secret@h/m.carton":             "https://",
		"HTTP://user:secret@h/m.carton?sig=secret": "registry.Options.PlainHTTP",
	} {
		for _, parse := range []func(string) error{
			func(s string) error { _, err := Parse(s); return err },
			func(s string) error { _, _, err := ParseDestination(s); return err },
		} {
			err := parse(s)
			if !errors.Is(err, ErrLocation) {
				t.Errorf("%s: got %v, want ErrLocation", s, err)
				continue
			}
			hints := fmt.Sprint(hint.Of(err))
			if !strings.Contains(hints, want) {
				t.Errorf("%s: got the hints %q, want one with %q", s, hints, want)
			}
			if strings.Contains(err.Error()+hints, "secret") {
				t.Errorf("%s: the error shows a secret: %v, %q", s, err, hints)
			}
		}
	}
}

func TestTarget(t *testing.T) {
	reg := Location{Kind: KindRegistry, Registry: "h.io", Repository: "m", Tag: "1"}
	for _, test := range []struct {
		in   string
		loc  Location
		tags []string
	}{
		{"h.io/m:1", reg, []string{"1"}},
		{"h.io/m:1,1.2,latest", reg, []string{"1", "1.2", "latest"}},
		{"oci:a,b/c:1,2", Location{Kind: KindLayout, Path: "a,b/c", Tag: "1"}, []string{"1", "2"}},
		{"oci:a,b:1", Location{Kind: KindLayout, Path: "a,b", Tag: "1"}, []string{"1"}},
		{"oci:a@" + aDigest, Location{Kind: KindLayout, Path: "a", Digest: aDigest}, nil},
	} {
		loc, tags, err := ParseDestination(test.in)
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.loc, loc); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.in, diff)
		}
		if diff := cmp.Diff(test.tags, tags); diff != "" {
			t.Errorf("%s: tags (-want +got)\n%s", test.in, diff)
		}
	}
	for _, s := range []string{
		"m.carton", "https://h/m.carton", "h.io/m", "oci:dir", "h.io/m,latest",
		"h.io/m:1,", "h.io/m:1,,2", "h.io/m:1,a b", "h.io/m@" + aDigest + ",latest",
	} {
		if loc, tags, err := ParseDestination(s); !errors.Is(err, ErrLocation) {
			t.Errorf("%s: got %+v, %q, %v, want ErrLocation", s, loc, tags, err)
		}
	}
}

func TestRedacted(t *testing.T) {
	for s, want := range map[string]string{
		"https://user:pass@h:1/a/m.carton?sig=secret#x": "https://…@h:1/a/m.carton?…",
		"https://h/m.carton":                            "https://h/m.carton",
	} {
		loc, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := loc.Redacted(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, s := range []string{
		"https://user:hunter2@h%zz/?sig=secret", "http://user:hunter2@h/m?sig=secret", "https:user:hunter2@h?secret", "HTTP://user:hunter2@h/m",
		"oci://user:hunter2@h/m:1", "docker://user:hunter2@h/m:1", "ftp://user:hunter2@h/m:1", "https:/user:hunter2@h/m", "user:hunter2@h.io/m:1",
		"user:hunter2@h.io", "user:hunter2@h.io/m.x?secret", "h.io/m:1?secret", "hf:org/m?secret", "hf:user:hunter2@org/m", "https://user:pa/hunter2@h/m", "docker://hunter2@h.io/m:1", "h.io/u:hunter2@m:1",
	} {
		_, err := Parse(s)
		shown := fmt.Sprint(err, hint.Of(err))
		if !errors.Is(err, ErrLocation) || strings.Contains(shown, "secret") || strings.Contains(shown, "hunter2") {
			t.Errorf("%s: got %s, want an error without secrets", s, shown)
		}
	}
	loc, err := Parse("HTTPS://user:pass@h.io/m")
	if err != nil || loc.Redacted() != "https://…@h.io/m" {
		t.Errorf("got %v, %v", loc, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"oci:a:1", "oci:a@" + aDigest, "https://h/m", "./m", "m.carton", "h.io/m:1@" + aDigest, "h:1/m", "[::1]:5000/m:1", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		loc, err := Parse(s)
		if err != nil {
			if !errors.Is(err, ErrLocation) {
				t.Fatalf("%q: got %v, want ErrLocation", s, err)
			}
			return
		}
		again, err := Parse(loc.String())
		if err != nil || again != loc {
			t.Fatalf("%q: got %+v, whose String %q reads as %+v, %v", s, loc, loc.String(), again, err)
		}
	})
}
