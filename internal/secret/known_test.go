package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/secret"
)

// TestStrike: what was sent is found again in every form that it is repeated in.
func TestStrike(t *testing.T) {
	const user, password = "ada", `p<w>/"ä +1&2:x`
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	client := &http.Client{Transport: secret.Watch(http.DefaultTransport)}
	defer client.CloseIdleConnections()
	send := func(change func(*http.Request)) {
		req, _ := http.NewRequest(http.MethodGet, server.URL+"/x?X-Sig=signature%2F123456&scope=repository:org/m:pull&lonelytoken", nil)
		change(req)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	send(func(req *http.Request) { req.SetBasicAuth(user, password) })
	send(func(req *http.Request) { req.Header.Set("Authorization", "Bearer bearer-0123456789") })
	form := url.Values{"refresh_token": {"refresh-0123456789"}}
	resp, err := client.PostForm(server.URL, form)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	secret.AddToken([]byte(`{"token":"token-0123456789","refresh_token":"fresh-0123456789"}`))

	quoted, _ := json.Marshal(password)
	both := []byte(user + ":" + password)
	for _, s := range []string{
		password, string(quoted), strconv.Quote(password), strconv.QuoteToASCII(password), url.QueryEscape(password), url.PathEscape(password),
		strings.ToLower(url.QueryEscape(password)), string(both), url.UserPassword(user, password).String(),
		base64.StdEncoding.EncodeToString(both), base64.URLEncoding.EncodeToString(both), base64.RawStdEncoding.EncodeToString([]byte(password)),
		"bearer-0123456789", "refresh-0123456789", "token-0123456789", "fresh-0123456789",
		"signature%2F123456", "signature/123456", "lonelytoken",
	} {
		for _, got := range []string{secret.Strike("is " + s + ", you know"), secret.StrikeResult("is " + s + ", you know")} {
			if strings.Contains(got, strings.Trim(s, `"`)) || !strings.HasPrefix(got, "is ") || !strings.HasSuffix(got, ", you know") {
				t.Errorf("of %s remains %s", s, got)
			}
		}
	}
	for _, s := range []string{"repository:org/m:pull", "ada", hex.EncodeToString([]byte("x"))} {
		if got := secret.Strike(s); got != s {
			t.Errorf("%s became %s", s, got)
		}
	}
	secret.Add("carton", "abc")
	if got := secret.StrikeResult("m.carton") + " " + secret.Strike("abc m.carton"); got != "m.carton abc m.…" {
		t.Errorf("got %q", got)
	}
}

// TestStrikeForgets: a process that runs for ever does not remember every token.
func TestStrikeForgets(t *testing.T) {
	secret.Add("oldest-token-of-all")
	for i := range 1100 {
		secret.Add("token-number-" + strconv.Itoa(100000+i))
	}
	if got := secret.Strike("oldest-token-of-all token-number-101099"); got != "oldest-token-of-all …" {
		t.Errorf("got %q", got)
	}
}
