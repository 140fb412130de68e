package secret_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// TestRedact: no spelling of a URL shows a password or a query, and what is
// neither stays as it is.
func TestRedact(t *testing.T) {
	for s, want := range map[string]string{
		"https://ada:hunter2@h.io/m.carton":          "https://…@h.io/m.carton",
		"HTTPS://ada:hunter2@h.io:8443/m.carton":     "HTTPS://…@h.io:8443/m.carton",
		"hTTps:/ada:hunter2@h.io/m":                  "hTTps:/…@h.io/m",
		"https:ada:hunter2@h?x":                      "https:…@h?…",
		"oci://ada:hunter2@h.io/m:1":                 "oci://…@h.io/m:1",
		"docker://ada:hunter2@h.io/m:1":              "docker://…@h.io/m:1",
		"ftp://ada:hunter2@h.io":                     "ftp://…@h.io",
		"ada:hunter2@h.io/m:1":                       "…@h.io/m:1",
		"ada:hunter2@h.io":                           "…@h.io",
		"oci:ada:hunter2@h.io/m":                     "oci:…@h.io/m",
		"hunter2@h.io/m:1":                           "…@h.io/m:1",
		"https://hunter2@h.io/m":                     "https://…@h.io/m",
		"https://ada:hun@ter2@h.io/m":                "https://…@h.io/m",
		"https://ada:hun/ter2@h.io/m":                "https://…",
		"https://ada:1/hunter2@h.io/m":               "https://…",
		"https://ada:h@n/ter2@h.io/m":                "https://…",
		"https://ada:hun?ter2@h.io/m":                "https://…",
		"https://ada:hun#ter2@h.io/m":                "https://…",
		"ada:hun/ter2@h.io/m:1":                      "…@h.io/m:1",
		"https://h.io/m?X-Amz-Signature=hunter2":     "https://h.io/m?…",
		"https://h.io/m?hunter2":                     "https://h.io/m?…",
		"https://h.io/m#hunter2":                     "https://h.io/m?…",
		"h.io/m.carton?sig=hunter2":                  "h.io/m.carton?…",
		"https://h%zz/?sig=hunter2":                  "https://h%zz/?…",
		"https://h.io/a@b/m.carton":                  "https://h.io/a@b/m.carton",
		"h.io/m:1@sha256:" + strings.Repeat("a", 64): "h.io/m:1@sha256:" + strings.Repeat("a", 64),
		"h:1/m@sha256:abc":                           "h:1/m@sha256:abc",
		"u:p@h:1/m@sha256:abc":                       "…@h:1/m@sha256:abc",
		"oci:a@b":                                    "oci:a@b",
		"oci:/home/a:b@c/lay:1":                      "oci:/home/a:b@c/lay:1",
		"oci:dir:1@sha256:abc":                       "oci:dir:1@sha256:abc",
		"./a:b@c/m.carton":                           "./a:b@c/m.carton",
		"/home/a@b?c/m.carton":                       "/home/a@b?c/m.carton",
		`C:\a:b@c`:                                   `C:\a:b@c`,
		"[::1]:5000/m:1":                             "[::1]:5000/m:1",
		"m.carton":                                   "m.carton",
		"":                                           "",
	} {
		got := secret.Redact(s)
		if got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		if again := secret.Redact(got); again != got {
			t.Errorf("%q: once more it is %q", got, again)
		}
	}
}

// TestAddTyped: an error that quotes what was typed does not show it either.
func TestAddTyped(t *testing.T) {
	for _, s := range []string{"https://ada:typed-1@h.io/m?typed-2", "ada:typed-3@h.io/m", "oci:ada:typed-4@h.io", "xy://ada:typ/ed-5@h.io"} {
		secret.AddTyped(s)
	}
	got := secret.Strike("open typed-1 typed-2 typed-3 typed-4 typ/ed-5: no such file")
	if want := "open … … … … …: no such file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{"a", "https", "oci", "a:b", "x/y"} {
		f.Add(s, "host.io/m")
	}
	f.Fuzz(func(t *testing.T, user, rest string) {
		if strings.ContainsAny(rest, "@?#") || strings.ContainsAny(user, "/?#@") {
			return
		}
		if got := secret.Redact("x+y://" + user + ":hunter2@" + rest); strings.Contains(got, "hunter2") && !strings.Contains(rest, "hunter2") {
			t.Errorf("got %q", got)
		}
	})
}

func TestURL(t *testing.T) {
	for s, want := range map[string]string{
		"https://ada:hunter2@h.io/a%2Fb?x=y#z": "https://h.io/a%2Fb?…",
		"mailto:ada:hunter2":                   "mailto:…",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := secret.URL(u); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := secret.URL(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestInText(t *testing.T) {
	err := errors.New(`Get "HTTPS://ada:hunter2@h.io/x?sig=hunter2": see http://h/?hunter2, or ask`)
	want := `Get "HTTPS://…@h.io/x?…": see http://h/?… or ask`
	if got := secret.InText(err.Error()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
