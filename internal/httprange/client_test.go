package httprange

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// guarded returns a client that may reach s.
func guarded(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(ClientOptions{Allow: []string{u.Host}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAllowedHostIsReached(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("content")) })
	got, err := read(t, &Getter{Do: guarded(t, s).Do, Policy: fast()}, s.URL, 0, -1, -1)
	if err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}
