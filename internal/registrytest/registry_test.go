package registrytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

// ask sends a request and returns the answer with its body read.
func ask(t *testing.T, method, address string, body []byte, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func wantStatus(t *testing.T, resp *http.Response, want int) {
	t.Helper()
	if resp.StatusCode != want {
		t.Errorf("%s %s: got %d, want %d", resp.Request.Method, resp.Request.URL, resp.StatusCode, want)
	}
}

func location(t *testing.T, resp *http.Response) string {
	t.Helper()
	u, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	return u.String()
}

func withDigest(loc string, b []byte) string {
	u, _ := url.Parse(loc)
	q := u.Query()
	q.Set("digest", digest.FromBytes(b).String())
	u.RawQuery = q.Encode()
	return u.String()
}

// TestChunked goes through an upload as the specification describes it.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks
func TestChunked(t *testing.T) {
	r := New(t, Config{})
	b := []byte("hello, world")
	resp, _ := ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil)
	wantStatus(t, resp, 202)
	loc := location(t, resp)

	resp, _ = ask(t, "PATCH", loc, b[:5], "Content-Range", "0-4")
	wantStatus(t, resp, 202)
	if got := resp.Header.Get("Range"); got != "0-4" {
		t.Errorf("Range is %q", got)
	}
	loc = location(t, resp)
	resp, _ = ask(t, "PATCH", loc, b[6:], "Content-Range", "6-11")
	wantStatus(t, resp, 416)
	resp, _ = ask(t, "GET", loc, nil)
	wantStatus(t, resp, 204)
	if got := resp.Header.Get("Range"); got != "0-4" {
		t.Errorf("after a chunk out of order Range is %q", got)
	}
	resp, body := ask(t, "PUT", withDigest(loc, []byte("other")), b[5:])
	wantStatus(t, resp, 400)
	if !strings.Contains(body, "DIGEST_INVALID") {
		t.Errorf("got %q", body)
	}
	resp, _ = ask(t, "GET", loc, nil)
	wantStatus(t, resp, 404)
	if _, ok := r.Blob("m", digest.FromBytes(b)); ok || r.Uploads() != 0 {
		t.Error("a refused upload left something")
	}

	resp, _ = ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil)
	resp, _ = ask(t, "PATCH", location(t, resp), b[:5])
	resp, _ = ask(t, "PUT", withDigest(location(t, resp), b), b[5:], "Content-Range", "5-11")
	wantStatus(t, resp, 201)
	if got, ok := r.Blob("m", digest.FromBytes(b)); !ok || !bytes.Equal(got, b) {
		t.Errorf("got %q", got)
	}
	resp, body = ask(t, "GET", r.URL+"/v2/m/blobs/"+digest.FromBytes(b).String(), nil, "Range", "bytes=7-11")
	wantStatus(t, resp, 206)
	if body != "world" || resp.Header.Get("Content-Range") != "bytes 7-11/12" {
		t.Errorf("got %q, Content-Range %q", body, resp.Header.Get("Content-Range"))
	}
	if in, out := r.Bytes("PATCH|PUT", "/blobs/uploads/"); in < 24 || out == 0 {
		t.Errorf("counted %d bytes in and %d out", in, out)
	}
}

// TestQuirks: each deviation is there when it is asked for, and only then.
func TestQuirks(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 100)
	for name, tt := range map[string]struct {
		quirks       Quirks
		status       int
		rangeOfPatch string
		ofStatus     string
	}{
		"none":  {Quirks{}, 202, "0-99", "0-99"},
		"GHCR":  {Quirks{MaxPatch: 99}, 416, "", "0-0"},
		"ECR":   {Quirks{PatchStatus: 201, StuckRange: true}, 201, "0-0", "0-0"},
		"Quay":  {Quirks{QuayRange: true}, 202, "0-99", "bytes=0-100"},
		"GAR":   {Quirks{OneShot: true}, 202, "0-99", ""},
		"other": {Quirks{NoStatus: true}, 202, "0-99", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(t, Config{Quirks: tt.quirks})
			resp, _ := ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil)
			loc := location(t, resp)
			resp, _ = ask(t, "PATCH", loc, chunk)
			wantStatus(t, resp, tt.status)
			if got := resp.Header.Get("Range"); got != tt.rangeOfPatch {
				t.Errorf("PATCH: Range is %q, want %q", got, tt.rangeOfPatch)
			}
			resp, _ = ask(t, "GET", loc, nil)
			if got := resp.Header.Get("Range"); got != tt.ofStatus {
				t.Errorf("GET: %d, Range is %q, want %q", resp.StatusCode, got, tt.ofStatus)
			}
		})
	}
	t.Run("addresses that change", func(t *testing.T) {
		r := New(t, Config{Quirks: Quirks{NewLocation: true}})
		resp, _ := ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil)
		old := location(t, resp)
		resp, _ = ask(t, "PATCH", old, chunk)
		wantStatus(t, resp, 202)
		resp, _ = ask(t, "PATCH", old, chunk)
		wantStatus(t, resp, 416)
	})
}

// TestManifestLast: an image manifest whose blobs are not there is refused.
func TestManifestLast(t *testing.T) {
	r := New(t, Config{})
	config := []byte("{}")
	m := fmt.Sprintf(`{"schemaVersion":2,"config":{"digest":%q,"size":2}}`, digest.FromBytes(config))
	resp, body := ask(t, "PUT", r.URL+"/v2/m/manifests/1", []byte(m), "Content-Type", "application/vnd.oci.image.manifest.v1+json")
	wantStatus(t, resp, 404)
	if !strings.Contains(body, "MANIFEST_BLOB_UNKNOWN") {
		t.Errorf("got %q", body)
	}
	r.AddBlob("m", config)
	resp, _ = ask(t, "PUT", r.URL+"/v2/m/manifests/1", []byte(m), "Content-Type", "application/vnd.oci.image.manifest.v1+json")
	wantStatus(t, resp, 201)
	_, body = ask(t, "GET", r.URL+"/v2/m/tags/list", nil)
	if strings.TrimSpace(body) != `{"name":"m","tags":["1"]}` {
		t.Errorf("got %q", body)
	}
	resp, _ = ask(t, "GET", r.URL+"/v2/m/manifests/1", nil, "Accept", "application/json")
	wantStatus(t, resp, 404)
}

// TestCDN: an address is good for one request, and takes no credentials.
func TestCDN(t *testing.T) {
	r := New(t, Config{Quirks: Quirks{CDN: true}})
	desc := r.AddBlob("m", []byte("x"))
	blob := r.URL + "/v2/m/blobs/" + desc.Digest.String()
	resp, body := ask(t, "GET", blob, nil)
	wantStatus(t, resp, 200)
	if body != "x" || resp.Request.URL.Host == r.Host {
		t.Errorf("got %q from %s", body, resp.Request.URL.Host)
	}
	again, _ := ask(t, "GET", resp.Request.URL.String(), nil)
	wantStatus(t, again, 403)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	first, err := client.Get(blob)
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	resp, _ = ask(t, "GET", location(t, first), nil, "Authorization", "Bearer x")
	wantStatus(t, resp, 400)
}

// TestFaults: a fault hits what it names, as often as it says.
func TestFaults(t *testing.T) {
	r := New(t, Config{})
	r.AddBlob("m", []byte("y"))
	r.Break(Fault{Methods: "GET|HEAD", Path: "/v2/m/", After: 1, Times: 2, Effect: Answer(503, "", "Retry-After", "1")})
	var got []int
	for range 5 {
		resp, _ := ask(t, "GET", r.URL+"/v2/m/tags/list", nil)
		got = append(got, resp.StatusCode)
	}
	if fmt.Sprint(got) != "[200 503 503 200 200]" {
		t.Errorf("got %v", got)
	}
	r.Break(Fault{Times: -1, Effect: Answer(500, "")})
	resp, _ := ask(t, "GET", r.URL+"/v2/", nil)
	wantStatus(t, resp, 500)
	r.Mend()
	resp, _ = ask(t, "GET", r.URL+"/v2/", nil)
	wantStatus(t, resp, 200)

	desc := r.AddBlob("m", bytes.Repeat([]byte("x"), 1000))
	r.Break(Fault{Effect: CutOut(400)})
	cut, err := http.Get(r.URL + "/v2/m/blobs/" + desc.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Body.Close()
	if b, err := io.ReadAll(cut.Body); len(b) != 400 || err == nil {
		t.Errorf("got %d bytes and %v, want 400 and an error", len(b), err)
	}
}

// TestAuth: what a request may do is what its credentials and scopes say.
func TestAuth(t *testing.T) {
	r := New(t, Config{Auth: Auth{Users: map[string]string{"u": "p"}, Bearer: true, AnonymousPull: true}})
	desc := r.AddBlob("m", []byte("x"))
	blob := r.URL + "/v2/m/blobs/" + desc.Digest.String()
	resp, _ := ask(t, "GET", blob, nil)
	wantStatus(t, resp, 401)
	want := fmt.Sprintf(`Bearer realm="%s/token",service="registrytest",scope="repository:m:pull"`, r.URL)
	if got := resp.Header.Get("WWW-Authenticate"); got != want {
		t.Errorf("the challenge is %q, want %q", got, want)
	}
	token := func(scope string, headers ...string) string {
		_, body := ask(t, "GET", r.URL+"/token?scope="+url.QueryEscape(scope), nil, headers...)
		_, rest, _ := strings.Cut(body, `"token":"`)
		key, _, _ := strings.Cut(rest, `"`)
		return "Bearer " + key
	}
	anonymous := token("repository:m:pull,push")
	resp, _ = ask(t, "GET", blob, nil, "Authorization", anonymous)
	wantStatus(t, resp, 200)
	resp, _ = ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil, "Authorization", anonymous)
	wantStatus(t, resp, 401)
	user := token("repository:m:pull,push", "Authorization", "Basic dTpw")
	resp, _ = ask(t, "POST", r.URL+"/v2/m/blobs/uploads/", nil, "Authorization", user)
	wantStatus(t, resp, 202)
	resp, _ = ask(t, "POST", r.URL+"/v2/other/blobs/uploads/", nil, "Authorization", user)
	wantStatus(t, resp, 401)
	resp, _ = ask(t, "GET", r.URL+"/token", nil, "Authorization", "Basic dTp4")
	wantStatus(t, resp, 401)
}

func TestCAFile(t *testing.T) {
	r := New(t, Config{TLS: true})
	if b, err := os.ReadFile(r.CAFile(t)); err != nil || !bytes.HasPrefix(b, []byte("-----BEGIN CERTIFICATE")) {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := http.Get(r.URL); err == nil {
		t.Error("the system trusts the test's authority")
	}
}
