package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

const testDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestParseReference(t *testing.T) {
	tests := []struct {
		in   string
		want Reference
		out  string // String's answer, where it is not in
	}{
		{in: "ghcr.io/org/m:1", want: Reference{Registry: "ghcr.io", Repository: "org/m", Tag: "1"}},
		{in: "ghcr.io/org/m", want: Reference{Registry: "ghcr.io", Repository: "org/m"}},
		{in: "ghcr.io/org/m@" + testDigest, want: Reference{Registry: "ghcr.io", Repository: "org/m", Digest: testDigest}},
		{in: "ghcr.io/org/m:v1.2_3-x@" + testDigest, want: Reference{Registry: "ghcr.io", Repository: "org/m", Tag: "v1.2_3-x", Digest: testDigest}},
		{in: "localhost/m:1", want: Reference{Registry: "localhost", Repository: "m", Tag: "1"}},
		{in: "localhost:5000/a/b/c:1", want: Reference{Registry: "localhost:5000", Repository: "a/b/c", Tag: "1"}},
		{in: "registry:5000/m:1", want: Reference{Registry: "registry:5000", Repository: "m", Tag: "1"}},
		{in: "127.0.0.1:5000/m:1", want: Reference{Registry: "127.0.0.1:5000", Repository: "m", Tag: "1"}},
		{in: "[::1]:5000/m:1", want: Reference{Registry: "[::1]:5000", Repository: "m", Tag: "1"}},
		{in: "[2001:db8::1]/m:1", want: Reference{Registry: "[2001:db8::1]", Repository: "m", Tag: "1"}},
		{in: "GHCR.io/org/m:Latest", want: Reference{Registry: "ghcr.io", Repository: "org/m", Tag: "Latest"}, out: "ghcr.io/org/m:Latest"},
		{in: "docker.io/m:1", want: Reference{Registry: "docker.io", Repository: "library/m", Tag: "1"}, out: "docker.io/library/m:1"},
		{in: "docker.io/org/m:1", want: Reference{Registry: "docker.io", Repository: "org/m", Tag: "1"}},
		{in: "index.docker.io/m:1", want: Reference{Registry: "docker.io", Repository: "library/m", Tag: "1"}, out: "docker.io/library/m:1"},
		{in: "registry-1.docker.io/o/m:1", want: Reference{Registry: "docker.io", Repository: "o/m", Tag: "1"}, out: "docker.io/o/m:1"},
		{in: "a.b/x--y__z.w/k-1:1", want: Reference{Registry: "a.b", Repository: "x--y__z.w/k-1", Tag: "1"}},
	}
	for _, tt := range tests {
		got, err := ParseReference(tt.in)
		if err != nil {
			t.Errorf("ParseReference(%q): %v", tt.in, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseReference(%q) (-want +got):\n%s", tt.in, diff)
		}
		out := tt.out
		if out == "" {
			out = tt.in
		}
		if got.String() != out {
			t.Errorf("ParseReference(%q).String() = %q, want %q", tt.in, got.String(), out)
		}
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	tests := []struct {
		in   string
		says string // part of the error
		hint string // part of the hint, "" where there is none
	}{
		{"", "names no registry", "HOST/REPOSITORY:TAG"},
		{"m", "names no registry", "HOST/REPOSITORY:TAG"},
		{"m:1", "names no registry", "HOST/REPOSITORY:TAG"},
		{"org/m:1", "names no registry", "HOST/REPOSITORY:TAG"},
		{"https://ghcr.io/org/m:1", `"https://"`, "write ghcr.io/org/m:1"},
		{"oci://ghcr.io/org/m:1", `"oci://"`, "write ghcr.io/org/m:1"},
		{"ghcr.io/Org/m:1", "lower-case", "write ghcr.io/org/m"},
		{"ghcr.io/:1", "repository", ""},
		{"ghcr.io//m:1", "repository", ""},
		{"ghcr.io/m/:1", "repository", ""},
		{"ghcr.io/../m:1", "repository", ""},
		{"ghcr.io/a..b:1", "repository", ""},
		{"ghcr.io/a___b:1", "repository", ""},
		{"ghcr.io/-a:1", "repository", ""},
		{"ghcr.io/a b:1", "repository", ""},
		{"ghcr.io/m:", "tag", ""},
		{"ghcr.io/m:-1", "tag", ""},
		{"ghcr.io/m:a/b", "tag", "a-b"},
		{"ghcr.io/m:1.0+cu118", "tag", "1.0_cu118"},
		{"ghcr.io/m:a,b", "tag", ""},
		{"ghcr.io/m:" + strings.Repeat("a", 129), "tag", ""},
		{"ghcr.io/m@", "digest", ""},
		{"ghcr.io/m@sha256:abc", "digest", ""},
		{"ghcr.io/m@" + strings.ToUpper(testDigest), "digest", ""},
		{"ghcr.io/m@sha256:../../x", "digest", ""},
		{"ghcr.io/m@sha512:" + strings.Repeat("a", 128), "digest", ""},
		{"ghcr.io/m@" + testDigest + "@" + testDigest, "digest", ""},
		{"ghcr.io:0/m:1", "port", ""},
		{"ghcr.io:65536/m:1", "port", ""},
		{"ghcr.io:/m:1", "port", ""},
		{"ghcr.io:+1/m:1", "port", ""},
		{"ghcr.io:05000/m:1", "port 5000 without zeros", ""},
		{"[0:0::1]:5000/m:1", "[::1]", ""},
		{"[::ffff:7f00:1]:5000/m:1", "[::ffff:127.0.0.1]", ""},
		{"ghcr.io:5000:1/m:1", "host name or address", ""},
		{"-a.b/m:1", "host", ""},
		{"a..b/m:1", "host", ""},
		{"user@ghcr.io/m:1", "more than", "registry.Client.Login"},
		{"gh\ncr.io/m:1", "host", ""},
		{"[::1/m:1", "bracket", ""},
		{"[::g]/m:1", "IPv6", ""},
		{"[127.0.0.1]/m:1", "IPv6", ""},
		{"[fe80::1%25eth0]/m:1", "IPv6", ""},
		{"[::1]5000/m:1", "IPv6", ""},
		{"ghcr.io/" + strings.Repeat("a", 248) + ":1", "256 bytes", ""},
	}
	for _, tt := range tests {
		ref, err := ParseReference(tt.in)
		if err == nil {
			t.Errorf("ParseReference(%q) = %v, want an error", tt.in, ref)
			continue
		}
		if !errors.Is(err, ErrReference) {
			t.Errorf("ParseReference(%q): %v does not wrap ErrReference", tt.in, err)
		}
		if !strings.Contains(err.Error(), tt.says) {
			t.Errorf("ParseReference(%q): got %q, want it to say %q", tt.in, err, tt.says)
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("ParseReference(%q): %q is not one printable line", tt.in, err)
		}
		if hints := fmt.Sprint(hint.Of(err)); !strings.Contains(hints, tt.hint) || (tt.hint == "") != (len(hint.Of(err)) == 0) {
			t.Errorf("ParseReference(%q): got the hint %q, want %q", tt.in, hints, tt.hint)
		}
	}
}

func TestReferenceTarget(t *testing.T) {
	for in, want := range map[string]string{
		"ghcr.io/m":                        "",
		"ghcr.io/m:1":                      "1",
		"ghcr.io/m@" + testDigest:          testDigest,
		"ghcr.io/m:1@" + testDigest:        testDigest,
		"docker.io/m:latest@" + testDigest: testDigest,
	} {
		ref, err := ParseReference(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := ref.Target(); got != want {
			t.Errorf("%s: Target() = %q, want %q", in, got, want)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, s := range []string{
		"ghcr.io/org/m:1", "docker.io/m", "[::1]:5000/m@" + testDigest, "localhost/m:1@" + testDigest,
		"a.b:1/c:d", "https://x.y/z", "GHCR.io/m", "a.b/c@sha256:", "[::", "a.b:/", "::/", "a.b/c:\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseReference(s)
		if err != nil {
			if !errors.Is(err, ErrReference) {
				t.Fatalf("%v does not wrap ErrReference", err)
			}
			return
		}
		again, err := ParseReference(ref.String())
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", s, ref.String(), err)
		}
		if again != ref {
			t.Fatalf("%q became %+v, then %+v", s, ref, again)
		}
		if err := CheckName(ref.Registry, ref.Repository); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(ref.Name(), "\x00 \n?#%\\") {
			t.Fatalf("%q became the unsafe name %q", s, ref.Name())
		}
	})
}
