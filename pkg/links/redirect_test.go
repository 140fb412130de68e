package links_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/links"
)

func TestLinkRedirects(t *testing.T) {
	target := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Referer", "Authorization", "Cookie"} {
			if v := r.Header.Get(name); v != "" {
				t.Errorf("the redirect's target was told %s: %s", name, v)
			}
		}
		serveContent([]byte("content"))(w, r)
	})
	plain := httptest.NewServer(serveContent([]byte("content")))
	defer plain.Close()
	other := newHost(t, serveContent([]byte("content")))
	var first *host
	first = newHost(t, func(w http.ResponseWriter, r *http.Request) {
		if hops, ok := strings.CutPrefix(r.URL.Path, "/hops/"); ok && hops != "0" {
			http.Redirect(w, r, fmt.Sprintf("/hops/%d", hops[0]-'1'), http.StatusFound)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, map[string]string{
			"/hops/0":  target.URL,
			"/loop":    first.URL + "/loop",
			"/plain":   plain.URL,
			"/private": "https://10.0.0.1/",
			"/number":  "https://2130706433/",
			"/user":    strings.Replace(target.URL, "https://", "https://user:secret@", 1),
			"/file":    "file:///etc/passwd",
			"/other":   other.URL,
			"/broken":  "https://user:secret@[broken",
		}[r.URL.Path], http.StatusTemporaryRedirect)
	})
	f := fetcher(links.Options{AllowHosts: []string{first.name(), target.name()}}, first, target, other)
	for path, ok := range map[string]bool{
		"/hops/0": true, "/hops/4": true, "/hops/5": false,
		"/loop": false, "/plain": false, "/private": false, "/number": false, "/user": false, "/file": false, "/other": false, "/broken": false,
	} {
		got, err := fetch(t.Context(), f, first.URL+path, 0, -1)
		switch {
		case ok && (err != nil || string(got) != "content"):
			t.Errorf("%s: got %q, %v", path, got, err)
		case !ok && !errors.Is(err, carton.ErrLink):
			t.Errorf("%s: got %q, %v, want ErrLink", path, got, err)
		case !ok && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error tells the password: %v", path, err)
		}
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("a host that is not allowed got %d requests", n)
	}
}

// Some servers of cartons name another place to fetch from in a header. It is no
// redirect: nobody has judged it, and nobody asks there.
func TestLinkHeaderThatNamesAnotherPlace(t *testing.T) {
	other := newHost(t, serveContent([]byte("content")))
	first := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Carton-Dl-Url", other.URL+"/elsewhere")
		serveContent([]byte("content"))(w, r)
	})
	f := fetcher(links.Options{AllowHosts: []string{first.name(), other.name()}}, first, other)
	if got, err := fetch(t.Context(), f, first.URL+"/x", 0, -1); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := other.requests.Load(); n != 0 {
		t.Errorf("the place that a header names got %d requests", n)
	}
}
