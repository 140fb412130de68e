package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Watch returns a transport that makes the secrets of every request that goes
// through next known before it is sent: of Authorization, of the form that a token
// server is sent, and of a query.
func Watch(next http.RoundTripper) http.RoundTripper { return watcher{next} }

type watcher struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w watcher) RoundTrip(req *http.Request) (*http.Response, error) {
	addHeader(req.Header.Get("Authorization"))
	addForm(req)
	AddQuery(req.URL)
	return w.next.RoundTrip(req)
}

// CloseIdleConnections closes those of the transport inside.
func (w watcher) CloseIdleConnections() {
	(&http.Client{Transport: w.next}).CloseIdleConnections()
}

func addHeader(authorization string) {
	scheme, token, _ := strings.Cut(authorization, " ")
	Add(token)
	if !strings.EqualFold(scheme, "basic") {
		return
	}
	if b, err := base64.StdEncoding.DecodeString(token); err == nil {
		user, password, _ := strings.Cut(string(b), ":")
		AddLogin(user, password)
	}
}

// maxForm is how much of a form is read, in bytes.
const maxForm = 128 << 10

func addForm(req *http.Request) {
	if req.GetBody == nil || req.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return
	}
	body, err := req.GetBody()
	if err != nil {
		return
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxForm))
	if err != nil {
		return
	}
	form, err := url.ParseQuery(string(b))
	if err == nil {
		AddLogin(form.Get("username"), form.Get("password"))
		Add(form.Get("refresh_token"))
	}
}

// AddToken makes the tokens known that a token server's answer holds.
func AddToken(answer []byte) {
	var tokens struct {
		Token        string `json:"token"`
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	if json.NewDecoder(bytes.NewReader(answer)).Decode(&tokens) == nil {
		Add(tokens.Token, tokens.AccessToken, tokens.RefreshToken)
	}
}

// minValue is how long a value of a query is, in bytes, that may be a signature.
const minValue = 8

// open are the keys of queries that registries and token servers are asked with,
// whose values are no secrets.
var open = map[string]bool{
	"digest": true, "mount": true, "from": true, "scope": true, "service": true, "account": true,
	"client_id": true, "artifactType": true, "last": true, "n": true, "ns": true,
}

// AddQuery makes the values of an address' query known: those of a presigned one
// are as good as a password.
func AddQuery(u *url.URL) {
	if u.RawQuery == "" {
		return
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" {
			key, value = "", key // a token alone
		}
		if open[key] || len(value) < minValue {
			continue
		}
		Add(value)
		if plain, err := url.QueryUnescape(value); err == nil {
			Add(plain)
		}
	}
}
