package client

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// web serves the bytes of a carton over https.
func web(t *testing.T, handler func(w http.ResponseWriter, r *http.Request, content []byte)) (string, Options) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), file, sample(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r, content) }))
	t.Cleanup(server.Close)
	var opts Options
	opts.Registry.HTTPClient = server.Client()
	return server.URL + "/m.carton", opts
}

func serve(w http.ResponseWriter, r *http.Request, content []byte) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func TestACartonOnAWebServer(t *testing.T) {
	url, opts := web(t, serve)
	src, err := fresh(opts).Open(t.Context(), url, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := carton.ReadMember(t.Context(), src, "model/b.bin", 10); err != nil || string(b) != "b" {
		t.Errorf("got %q, %v, want b", b, err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, err := carton.ReadMember(t.Context(), src, "model/a.bin", 1<<20); err == nil {
		t.Error("a closed source was read")
	}
	opts.Repository = within(inMemory()).Repository
	pushed, err := fresh(opts).Push(t.Context(), url, "h.io/m:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := pushTo(t, inMemory(), "h.io/m:1", sample()).Digest; pushed.Digest != want {
		t.Errorf("got %s, want that of the file, %s", pushed.Digest, want)
	}
}

func TestWebServersThatDoNotServe(t *testing.T) {
	for name, test := range map[string]struct {
		handler func(http.ResponseWriter, *http.Request, []byte)
		want    error  // nil: any
		text    string // in the error or a hint
	}{
		"missing":   {func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusNotFound) }, fs.ErrNotExist, "404"},
		"gone":      {func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusGone) }, fs.ErrNotExist, "410"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusForbidden) }, fs.ErrPermission, "403"},
		"closed":    {func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusUnauthorized) }, fs.ErrPermission, "401"},
		"no ranges": {func(w http.ResponseWriter, _ *http.Request, b []byte) { _, _ = w.Write(b) }, ErrNoRanges, "download it"},
		"no carton": {func(w http.ResponseWriter, r *http.Request, b []byte) { serve(w, r, make([]byte, len(b))) }, carton.ErrFormat, "not a zip"},
		"cut short": {func(w http.ResponseWriter, r *http.Request, b []byte) { serve(w, r, b[:len(b)-5]) }, carton.ErrFormat, "cut short"},
		"downgrade": {func(w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, "http://"+r.Host+"/m.carton", http.StatusFound)
		}, nil, "redirect from https to http"},
	} {
		url, opts := web(t, test.handler)
		url = strings.Replace(url, "https://", "https://user:password@", 1) + "?token=secret"
		src, err := fresh(opts).Open(t.Context(), url, OpenOptions{})
		if err == nil {
			src.Close()
			t.Errorf("%s: got no error", name)
			continue
		}
		text := fmt.Sprint(err, hint.Of(err))
		if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(text, test.text) {
			t.Errorf("%s: got %s, want %v and %q", name, text, test.want, test.text)
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "password") {
			t.Errorf("%s: the error tells a secret: %s", name, text)
		}
	}
}

// A member that the server changes between two requests is no member.
func TestAWebServerThatLies(t *testing.T) {
	requests := 0
	url, opts := web(t, func(w http.ResponseWriter, r *http.Request, b []byte) {
		requests++
		serve(w, r, bytes.ReplaceAll(b, []byte("aaaa"), []byte("AAAA")))
	})
	src, err := fresh(opts).Open(t.Context(), url, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := carton.ReadMember(t.Context(), src, "model/a.bin", 1<<20); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
	out := filepath.Join(t.TempDir(), "m.carton")
	if _, err := fresh(opts).Pull(t.Context(), url, PullOptions{Output: out}); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("got %v, want ErrChecksum", err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the output is there: %v", err)
	}
	if requests == 0 {
		t.Error("the server was not asked")
	}
}
