package registry

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func TestParseStatusRange(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0-0", 0, true}, // an empty upload; nobody sends one byte
		{"0-1048575", 1 << 20, true},
		{" 0-99 ", 100, true},
		{"bytes=0-1048576", 1 << 20, true}, // Quay
		{"bytes=0-0", 0, true},
		{"bytes=0--1", 0, true}, // Quay, when an upload begins
		{"0--1", 0, false},
		{"", 0, false},
		{"0", 0, false},
		{"0-", 0, false},
		{"-5", 0, false},
		{"1-5", 0, false},
		{"00-5", 0, false},
		{"0-+5", 0, false},
		{"0- 5", 0, false},
		{"0-5-6", 0, false},
		{"0-9223372036854775807", 0, false},
		{"0-99999999999999999999", 0, false},
		{"bytes 0-5", 0, false},
	}
	for _, tt := range tests {
		if got, ok := parseStatusRange(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("parseStatusRange(%q) = %d, %v; want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParseStatusRange(f *testing.F) {
	for _, s := range []string{"0-0", "0-1048575", "bytes=0-5", "bytes=0--1", "0-9223372036854775807", "-", "0-\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := parseStatusRange(s)
		if n < 0 || !ok && n != 0 {
			t.Fatalf("parseStatusRange(%q) = %d, %v", s, n, ok)
		}
		if ok && n == 1 && !strings.Contains(s, "bytes=") {
			t.Fatalf("parseStatusRange(%q) = 1: %q can't be told from an empty upload", s, "0-0")
		}
	})
}

// TestUploadLocation: where an upload goes on is the registry's to say, but on
// its own host only, and never from https to http.
func TestUploadLocation(t *testing.T) {
	other := registrytest.New(t, registrytest.Config{})
	tests := map[string]struct {
		tls  bool
		to   func(string) string
		kind error // nil: works
	}{
		"relative":       {to: func(s string) string { u, _ := url.Parse(s); return u.RequestURI() }},
		"no query":       {to: func(s string) string { s, _, _ = strings.Cut(s, "?"); return s }},
		"user info":      {to: func(s string) string { return strings.Replace(s, "://", "://u:p@", 1) }},
		"fragment":       {to: func(s string) string { return s + "#x" }},
		"other host":     {to: func(s string) string { return strings.Replace(s, "127.0.0.1", "localhost", 1) }, kind: ErrUnsafe},
		"other port":     {to: func(s string) string { u, _ := url.Parse(s); return other.URL + u.RequestURI() }, kind: ErrUnsafe},
		"no scheme":      {to: func(s string) string { u, _ := url.Parse(s); return "//" + other.Host + u.RequestURI() }, kind: ErrUnsafe},
		"downgrade":      {tls: true, to: func(s string) string { return strings.Replace(s, "https", "http", 1) }, kind: ErrUnsafe},
		"file":           {to: func(string) string { return "file:///etc/passwd" }, kind: ErrUnsafe},
		"none":           {to: func(string) string { return "" }, kind: layout.ErrFormat},
		"unreadable":     {to: func(string) string { return "http://[::1" }, kind: layout.ErrFormat},
		"relative https": {tls: true, to: func(s string) string { u, _ := url.Parse(s); return u.RequestURI() }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{TLS: tt.tls, Quirks: registrytest.Quirks{Location: tt.to}})
			repo := dial(t, reg, "org/m", Options{Insecure: true})
			err := repo.Push(t.Context(), layer(describeBytes([]byte("x")), opener([]byte("x"))), layout.Watch{})
			if tt.kind == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			checkError(t, err, tt.kind, "upload", "")
			if got := reg.Count("POST", ""); got != 1 {
				t.Errorf("got %d POSTs, want 1: this does not pass", got)
			}
			if got := reg.Count("PUT", ""); got != 0 {
				t.Errorf("got %d PUTs, want none", got)
			}
		})
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

// TestLocationPort: some registries leave the default port out of an address
// that they were asked with.
func TestLocationPort(t *testing.T) {
	r := repositoryAt(t, "registry.example:443", "m", Options{})
	asked, _ := url.Parse("https://registry.example:443/v2/m/blobs/uploads/")
	resp := &http.Response{Header: http.Header{"Location": {"https://registry.example/v2/m/blobs/uploads/1"}}, Request: &http.Request{URL: asked}}
	got, err := r.location(resp, asked)
	if want := "https://registry.example:443/v2/m/blobs/uploads/1"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestSameHost(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"https://h/x", "https://h:443/y", true},
		{"http://h/x", "http://h:80/y", true},
		{"https://h/x", "https://H/y", true},
		{"https://[::1]/x", "https://[::1]:443/y", true},
		{"https://h/x", "http://h/x", false},
		{"https://h/x", "https://h:444/x", false},
		{"https://h/x", "https://x.h/x", false},
		{"https://h/x", "https://h.x/x", false},
	} {
		a, _ := url.Parse(tt.a)
		b, _ := url.Parse(tt.b)
		if got := sameHost(a, b); got != tt.want {
			t.Errorf("sameHost(%s, %s) = %v, want %v", a, b, got, tt.want)
		}
	}
}

// TestHosts: what a host is known for counts for its names, and no others.
func TestHosts(t *testing.T) {
	for host, name := range map[string]string{
		"123.dkr.ecr.eu-west-1.amazonaws.com":     "Amazon ECR",
		"123.dkr.ecr.cn-north-1.amazonaws.com.cn": "Amazon ECR",
		"public.ecr.aws":                          "Amazon ECR Public",
		"europe-docker.pkg.dev":                   "Google Artifact Registry",
		"gcr.io":                                  "Google Container Registry",
		"eu.gcr.io":                               "Google Container Registry",
		"notgcr.io":                               "",
		"ghcr.io":                                 "GitHub Container Registry",
		"ghcr.io.example":                         "",
		"quay.io":                                 "Quay",
		"me.azurecr.io":                           "Azure Container Registry",
		"azurecr.io":                              "",
		"registry-1.docker.io":                    "Docker Hub",
		"localhost:5000":                          "",
		"":                                        "",
	} {
		if got := behaviourOf(host).name; got != name {
			t.Errorf("behaviourOf(%q) is of %q, want %q", host, got, name)
		}
	}
	for _, b := range behaviours {
		if len(b.sources) == 0 || b.name == "" || len(b.hosts) == 0 {
			t.Errorf("%s: nothing says who it is, and why", b.name)
		}
	}
}

// TestHostThatCannotResume: its status is not asked for.
func TestHostThatCannotResume(t *testing.T) {
	for name, b := range map[string]behaviour{"stuck": {rangeNeverAdvances: true}, "once": {singleUseURL: true}} {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{StateDir: t.TempDir()})
		repo.host.behaviour = b
		reg.Break(put(registrytest.CutIn(1 << 20)))
		blob := random(1, 5<<20)
		if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
		if posts, gets := reg.Count("POST", uploads), reg.Count("GET", uploads); posts != 2 || gets != 0 {
			t.Errorf("%s: got %d sessions and %d questions, want 2 and none", name, posts, gets)
		}
	}
}

func TestMount(t *testing.T) {
	ctx := t.Context()
	here := func(reg *registrytest.Registry) layout.Origin {
		return layout.Origin{Registry: reg.Host, Repository: "other/m"}
	}
	b := random(1, 1000)
	t.Run("mounted", func(t *testing.T) {
		auth := registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true}
		reg := registrytest.New(t, registrytest.Config{Auth: auth})
		repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
		desc := reg.AddBlob("other/m", b)
		if ok, err := repo.Mount(ctx, desc, here(reg)); !ok || err != nil {
			t.Fatalf("Mount = %v, %v", ok, err)
		}
		if _, ok := reg.Blob("org/m", desc.Digest); !ok {
			t.Error("the blob is not here")
		}
		if in, out := reg.Bytes("GET|PUT|PATCH", "/blobs/sha256"); in+out != 0 {
			t.Errorf("%d bytes travelled", in+out)
		}
	})
	t.Run("mounted, and not there", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		reg.Break(registrytest.Fault{Methods: "POST", Effect: registrytest.Answer(201, "")})
		if ok, err := repo.Mount(ctx, reg.AddBlob("other/m", b), here(reg)); ok || err != nil {
			t.Fatalf("Mount = %v, %v; want false: the registry has no such blob", ok, err)
		}
	})
	t.Run("not mounted, its session is used", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoMount: true}})
		repo := dial(t, reg, "org/m", Options{})
		desc := reg.AddBlob("other/m", b)
		for range 2 { // the second session replaces the first
			if ok, err := repo.Mount(ctx, desc, here(reg)); ok || err != nil {
				t.Fatalf("Mount = %v, %v", ok, err)
			}
		}
		if n := reg.Uploads(); n != 1 {
			t.Errorf("%d uploads are open, want 1", n)
		}
		if err := repo.Push(ctx, layer(desc, opener(b)), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
		if got := reg.Count("POST", ""); got != 2 {
			t.Errorf("got %d POSTs, want 2", got)
		}
		if n := reg.Uploads(); n != 0 {
			t.Errorf("%d uploads are left open", n)
		}
	})
	t.Run("a session that has expired since", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoMount: true}})
		repo := dial(t, reg, "org/m", Options{})
		desc := reg.AddBlob("other/m", b)
		if _, err := repo.Mount(ctx, desc, here(reg)); err != nil {
			t.Fatal(err)
		}
		reg.Break(put(registrytest.Answer(404, "")))
		if err := repo.Push(ctx, layer(desc, opener(b)), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for _, status := range []int{400, 403, 404, 405} {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			reg.Break(registrytest.Fault{Methods: "POST", Effect: registrytest.Answer(status, "")})
			if ok, err := repo.Mount(ctx, reg.AddBlob("other/m", b), here(reg)); ok || err != nil {
				t.Errorf("%d: Mount = %v, %v; want false and no error", status, ok, err)
			}
		}
	})
	t.Run("no token for both", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true}})
		repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
		reg.Break(registrytest.Fault{
			Path: "/token", Times: -1, Effect: registrytest.Answer(403, `{"errors":[{"code":"DENIED"}]}`),
			Match: func(req *http.Request) bool { return strings.Contains(req.URL.RawQuery, "other") },
		})
		desc := reg.AddBlob("other/m", b)
		if ok, err := repo.Mount(ctx, desc, here(reg)); ok || err != nil {
			t.Errorf("Mount = %v, %v; want false and no error", ok, err)
		}
		if err := repo.Push(ctx, layer(desc, opener(b)), layout.Watch{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		reg.Break(registrytest.Fault{Methods: "POST", Times: -1, Effect: registrytest.LoseAnswer})
		if ok, err := repo.Mount(ctx, reg.AddBlob("other/m", b), here(reg)); ok || err == nil {
			t.Errorf("Mount = %v, %v; want an error", ok, err)
		}
	})
	t.Run("nothing to ask", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		for _, from := range []layout.Origin{
			{Registry: "ghcr.io", Repository: "other/m"},
			{Registry: reg.Host, Repository: "org/m"},
			{Registry: reg.Host, Repository: "../m"},
			{},
		} {
			if ok, err := repo.Mount(ctx, describeBytes(b), from); ok || err != nil {
				t.Errorf("Mount(%v) = %v, %v", from, ok, err)
			}
		}
		if n := len(reg.Requests()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}
