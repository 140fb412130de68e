package registry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const blobs = "/blobs/sha256"

// TestOpenRangeRecovers breaks a download in every way that may pass.
func TestOpenRangeRecovers(t *testing.T) {
	const mib = 1 << 20
	b := random(1, 4*mib)
	get := func(e registrytest.Effect) registrytest.Fault {
		return registrytest.Fault{Methods: "GET", Path: blobs, Effect: e}
	}
	policy := quick
	policy.Stall = time.Second
	tests := map[string]struct {
		conf   registrytest.Config
		break_ func(*registrytest.Registry)
		gets   int
	}{
		"nothing": {gets: 1},
		"cut":     {break_: func(r *registrytest.Registry) { r.Break(get(registrytest.CutOut(mib))) }, gets: 2},
		"cut many times": {break_: func(r *registrytest.Registry) {
			f := get(registrytest.CutOut(mib / 4))
			f.Times = 12
			r.Break(f)
		}, gets: 12},
		"stall":          {break_: func(r *registrytest.Registry) { r.Break(get(r.StallOut(mib))) }, gets: 2},
		"no answer":      {break_: func(r *registrytest.Registry) { r.Break(get(r.Hang)) }, gets: 2},
		"503":            {break_: func(r *registrytest.Registry) { r.Break(get(registrytest.Answer(503, ""))) }, gets: 2},
		"no ranges, cut": {conf: registrytest.Config{Quirks: registrytest.Quirks{NoRanges: true}}, break_: func(r *registrytest.Registry) { r.Break(get(registrytest.CutOut(mib))) }, gets: 2},
		"CDN, cut": {conf: registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}, break_: func(r *registrytest.Registry) {
			r.Break(registrytest.Fault{Path: "/cdn/", Effect: registrytest.CutOut(mib)})
		}, gets: 2},
		"CDN, expired": {conf: registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}, break_: func(r *registrytest.Registry) {
			r.Break(registrytest.Fault{Path: "/cdn/", Effect: registrytest.Answer(503, "")})
		}, gets: 2},
		"token expires": {conf: registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true, TokenUses: 1}}, break_: func(r *registrytest.Registry) {
			f := get(registrytest.CutOut(mib))
			f.After = 1 // the first is refused: its token has gone into Stat
			r.Break(f)
		}, gets: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, tt.conf)
			if tt.break_ != nil {
				tt.break_(reg)
			}
			repo := dial(t, reg, "org/m", Options{Policy: policy, Credential: static("u", "p")})
			desc := reg.AddBlob("org/m", b)
			if tt.conf.Auth.Bearer {
				if _, err := repo.Stat(t.Context(), desc.Digest); err != nil {
					t.Fatal(err)
				}
			}
			rc, err := repo.OpenRange(t.Context(), desc, 100, 3*mib)
			if got := readAll(t, rc, err); !bytes.Equal(got, b[100:100+3*mib]) {
				t.Error("the range comes back different")
			}
			if got := reg.Count("GET", blobs); got != tt.gets {
				t.Errorf("got %d GETs, want %d", got, tt.gets)
			}
			for _, rec := range reg.Requests() {
				if rec.CDN && rec.Header.Get("Authorization") != "" {
					t.Error("the CDN was sent credentials")
				}
			}
		})
	}
}

func TestOpenRangeFails(t *testing.T) {
	b := random(1, 1000)
	page := "<html>Please log in</html>"
	tests := map[string]struct {
		auth   registrytest.Auth
		effect registrytest.Effect
		kind   error
		says   string
		gets   int
	}{
		"404":        {effect: registrytest.Answer(404, `{"errors":[{"code":"BLOB_UNKNOWN","message":"blob unknown"}]}`), kind: layout.ErrNotFound, says: `404 Not Found: "blob unknown"`, gets: 1},
		"403":        {effect: registrytest.Answer(403, ""), kind: ErrDenied, says: "403 Forbidden", gets: 1},
		"503":        {effect: registrytest.Answer(503, ""), says: "gave up after 6 attempts", gets: 6},
		"a web page": {effect: registrytest.Answer(200, page, "Content-Type", "text/html"), kind: httprange.ErrAnswer, says: "26 bytes, want 1000", gets: 1},
		"too long":   {effect: registrytest.Answer(200, strings.Repeat("x", 1001)), kind: httprange.ErrAnswer, says: "1001 bytes, want 1000", gets: 1},
		"no login":   {auth: registrytest.Auth{Users: map[string]string{"x": "y"}}, kind: ErrUnauthorized, says: "401", gets: 2},
		"a loop": {effect: func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			http.Redirect(w, req, req.URL.Path, http.StatusTemporaryRedirect)
		}, kind: ErrUnsafe, says: "10 redirects", gets: 10},
		"to a file":    {effect: registrytest.Answer(307, "", "Location", "file:///etc/passwd"), kind: ErrUnsafe, says: "file", gets: 1},
		"shouting":     {effect: registrytest.Answer(400, strings.Repeat("\x1b[31mfire\n", 1<<20), "Content-Type", "text/plain"), says: "fire [31mfire", gets: 1},
		"empty answer": {effect: registrytest.Answer(200, "", "Content-Length", "0"), kind: httprange.ErrAnswer, says: "0 bytes, want 1000", gets: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Auth: tt.auth})
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
			desc := reg.AddBlob("org/m", b)
			if tt.effect != nil {
				reg.Break(registrytest.Fault{Methods: "GET", Path: blobs, Times: -1, Effect: tt.effect})
			}
			rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
			if err == nil {
				_, err = io.Copy(io.Discard, rc)
				rc.Close()
			}
			checkError(t, err, tt.kind, tt.says, "")
			if got := reg.Count("GET", blobs); got != tt.gets {
				t.Errorf("got %d GETs, want %d", got, tt.gets)
			}
		})
	}
}

func TestStat(t *testing.T) {
	b := random(1, 1000)
	for name, tt := range map[string]struct {
		quirks registrytest.Quirks
		auth   registrytest.Auth
		break_ *registrytest.Fault
		asks   int
	}{
		"head":            {asks: 1},
		"head is refused": {quirks: registrytest.Quirks{NoHead: 401}, asks: 2}, // Harbor
		"head is unknown": {quirks: registrytest.Quirks{NoHead: 405}, asks: 2},
		"cdn":             {quirks: registrytest.Quirks{CDN: true}, asks: 1},
		"no ranges":       {quirks: registrytest.Quirks{NoHead: 405, NoRanges: true}, asks: 2},
		"503 five times":  {break_: &registrytest.Fault{Methods: "HEAD", Times: 5, Effect: registrytest.Answer(503, "")}, asks: 6},
		"head without size": {break_: &registrytest.Fault{Methods: "HEAD", Effect: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Transfer-Encoding", "chunked")
			w.WriteHeader(http.StatusOK)
		}}, asks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			repo := dial(t, reg, "org/m", Options{})
			desc := reg.AddBlob("org/m", b)
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			if got, err := repo.Stat(t.Context(), desc.Digest); err != nil || got != 1000 {
				t.Errorf("Stat = %d, %v; want 1000", got, err)
			}
			if got := reg.Count("HEAD|GET", blobs); got != tt.asks {
				t.Errorf("got %d requests, want %d", got, tt.asks)
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(t.Context(), testDigest)
		checkError(t, err, layout.ErrNotFound, "404", "")
	})
	t.Run("absent, head refused", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoHead: 401}})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(t.Context(), testDigest)
		checkError(t, err, layout.ErrNotFound, `"blob unknown`, "")
	})
	t.Run("denied", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Denied: []string{"org/m"}}})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(t.Context(), testDigest)
		checkError(t, err, ErrDenied, `"denied: requested`, "registry.Client.Login")
	})
	t.Run("wrong digest", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{DigestHeader: testDigest}})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(t.Context(), reg.AddBlob("org/m", b).Digest)
		checkError(t, err, layout.ErrDigest, testDigest, "")
	})
	t.Run("no digest", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		_, err := repo.Stat(t.Context(), "sha256:../../x")
		checkError(t, err, layout.ErrFormat, "64 lower-case hex", "")
	})
}

// TestOpenRangeCancelled: a read ends with its context.
func TestOpenRangeCancelled(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	desc := reg.AddBlob("org/m", random(1, 1<<20))
	ctx, cancel := context.WithCancel(t.Context())
	reg.Break(registrytest.Fault{Methods: "GET", Path: blobs, Times: -1, Effect: reg.StallOut(1000)})
	rc, err := repo.OpenRange(ctx, desc, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = io.Copy(io.Discard, rc)
	checkError(t, err, context.Canceled, "canceled", "")
}

// TestStatPause: a pause that nobody wants to wait for is the answer itself.
func TestStatPause(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	reg.Break(registrytest.Fault{Path: blobs, Times: -1, Effect: registrytest.Answer(429, `{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit"}]}`, "Retry-After", "86400")})
	_, err := repo.Stat(t.Context(), testDigest)
	checkError(t, err, nil, `429 Too Many Requests: "toomanyrequests: pull rate limit"`, "")
	if got := reg.Count("", blobs); got != 2 { // HEAD, and GET for its words
		t.Errorf("asked %d times, want twice", got)
	}
}
