package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestTraceTellsNoSecret(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/next?signature=secret")
		_, _ = w.Write([]byte("secret body"))
	}))
	defer server.Close()
	var b bytes.Buffer
	tr := &trace{w: &b}
	client := &http.Client{Transport: tr.wrap(http.DefaultTransport)}
	defer client.CloseIdleConnections()

	url := strings.Replace(server.URL, "http://", "http://user:secret@", 1) + "/v2/m%2Fn/blobs/x?secret#secret"
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Range", "bytes=0-9")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	tr.end()

	want := regexp.MustCompile(`^debug: GET http://127\.0\.0\.1:\d+/v2/m%2Fn/blobs/x\?… bytes=0-9: 200 \(11 bytes\), \d+ ms
debug: 1 request
(debug: peak memory: \d+\.\d MiB
)?$`)
	if !want.MatchString(b.String()) {
		t.Errorf("got %q, want %s", b.String(), want)
	}
}

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestTraceTellsErrors(t *testing.T) {
	var b bytes.Buffer
	tr := (&trace{w: &b}).wrap(failing{errors.New("connection \x1b[31mreset")})
	req := httptest.NewRequest(http.MethodPut, "https://h.io/v2/", nil)
	if _, err := tr.RoundTrip(req); err == nil { //nolint:bodyclose // there is none
		t.Error("the error is lost")
	}
	if got, want := b.String(), `debug: PUT https://h.io/v2/: connection \x1b[31mreset, 0 ms`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
