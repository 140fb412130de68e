package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// TestSecretsUnderOddAnswers: ways to make a client say or send a secret that
// rely on something other than where an answer leads. Each is tried by every verb.
func TestSecretsUnderOddAnswers(t *testing.T) {
	const cookie = "session-cookie-0123456789"
	header := registrytest.Answer
	type attempt struct {
		path   string
		effect func(o *recorder) registrytest.Effect
		env    func(o *recorder) []string
		flags  []string
	}
	attempts := map[string]attempt{
		"a cookie": {"/v2/", func(o *recorder) registrytest.Effect {
			return header(307, "", "Location", o.URL+"/x", "Set-Cookie", "s="+cookie+"; Path=/")
		}, nil, nil},
		"user info in a redirect": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(307, "", "Location", strings.Replace(o.URL, "//", "//eve:"+secretQuery+"@", 1)+"/x")
		}, nil, nil},
		"user info without a host": {"/v2/org/", func(*recorder) registrytest.Effect {
			return header(307, "", "Location", "http://eve:"+secretQuery+"@/x")
		}, nil, nil},
		"a redirect that no parser takes": {"/v2/org/", func(*recorder) registrytest.Effect {
			return header(307, "", "Location", "http://eve:"+secretQuery+"@[::1/x?"+secretQuery)
		}, nil, nil},
		"a next page elsewhere": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(200, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`,
				"Content-Type", "application/vnd.oci.image.index.v1+json", "Link", "<"+o.URL+"/next?"+secretQuery+`>; rel="next"`)
		}, nil, nil},
		"Refresh and Content-Location": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(200, "{}", "Refresh", "0;url="+o.URL, "Content-Location", o.URL+"/x")
		}, nil, nil},
		"a challenge for another scheme": {"/v2/org/", func(*recorder) registrytest.Effect {
			return header(401, "", "WWW-Authenticate", "Digest realm=\""+secretQuery+"\"")
		}, nil, nil},
		"two realms": {"/v2/org/", func(o *recorder) registrytest.Effect {
			elsewhere := strings.Replace(o.URL, "127.0.0.1", "localhost", 1)
			return header(401, "", "WWW-Authenticate", `Bearer realm="`+elsewhere+`/t",realm="`+elsewhere+`/t2",service="x"`)
		}, nil, nil},
		"a realm with user info": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(401, "", "WWW-Authenticate", `Bearer realm="`+strings.Replace(o.URL, "127.0.0.1", "eve:"+secretQuery+"@localhost", 1)+`/t"`)
		}, nil, nil},
		"a realm below the registry's name": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(401, "", "WWW-Authenticate", `Bearer realm="`+strings.Replace(o.URL, "127.0.0.1", "127.0.0.1.nip.invalid", 1)+`/t"`)
		}, nil, nil},
		"a realm with a backslash": {"/v2/org/", func(o *recorder) registrytest.Effect {
			return header(401, "", "WWW-Authenticate", `Bearer realm="http://127.0.0.1\\@`+strings.TrimPrefix(o.URL, "http://")+`/t"`)
		}, nil, nil},
		"a token that breaks the header": {"/token", func(*recorder) registrytest.Effect {
			return header(200, `{"token":"`+secretQuery+`\r\nX-Evil: 1"}`)
		}, nil, nil},
		"a token of another kind": {"/token", func(*recorder) registrytest.Effect {
			return header(200, `{"token":{"x":"`+secretQuery+`"}}`)
		}, nil, nil},
		"a token server's page": {"/token", func(*recorder) registrytest.Effect {
			return header(200, `<html>`+secretQuery, "Content-Type", "text/html")
		}, nil, nil},
		"a proxy that wants another login": {"/none", nil, func(o *recorder) []string {
			return []string{"HTTP_PROXY=" + strings.Replace(o.URL, "//", "//ada:"+secretPassword+"@", 1), "HTTPS_PROXY=" + strings.Replace(o.URL, "//", "//ada:"+secretPassword+"@", 1)}
		}, nil},
		"a proxy that nobody runs": {"/none", nil, func(*recorder) []string {
			return []string{"HTTPS_PROXY=http://ada:" + secretPassword + "@127.0.0.1:9", "HTTP_PROXY=http://ada:" + secretPassword + "@127.0.0.1:9"}
		}, []string{"--plain-http"}},
		"a proxy that no parser takes": {"/none", nil, func(*recorder) []string {
			return []string{"HTTPS_PROXY=http://ada:" + secretPassword + "%@proxy:x"}
		}, nil},
		"an upload's address with user info": {"/uploads/", func(o *recorder) registrytest.Effect {
			return header(202, "", "Location", strings.Replace(o.URL, "//", "//eve:"+secretQuery+"@", 1)+"/u?"+secretQuery)
		}, nil, nil},
		"a redirect of an upload": {"/uploads/", func(o *recorder) registrytest.Effect {
			return header(308, "", "Location", o.URL+"/u?"+secretQuery)
		}, nil, nil},
		"a CDN that asks for a login": {"/blobs/", func(o *recorder) registrytest.Effect {
			return header(307, "", "Location", o.URL+"/ask?sig="+secretQuery)
		}, nil, nil},
		"Retry-After and Warning": {"/v2/org/", func(*recorder) registrytest.Effect {
			return header(429, "", "Retry-After", "999999", "Warning", "299 - "+secretQuery)
		}, nil, nil},
		"a status line": {"/v2/org/", func(*recorder) registrytest.Effect {
			return header(499, "\x1b]0;x\x07\u202e", "Content-Type", "text/plain")
		}, nil, nil},
	}
	var leaks, runs atomic.Int64
	t.Cleanup(func() {
		testenv.Checked(t, int(runs.Load()), "%d commands under odd answers, %d secrets at a wrong host or in any output", runs.Load(), leaks.Load())
	})
	for name, a := range attempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // many wait to try again
			other := newRecorder(t, func(w http.ResponseWriter, req *http.Request) {
				if strings.HasPrefix(req.URL.Path, "/ask") {
					w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
					http.Error(w, "login to "+req.URL.String(), http.StatusUnauthorized)
					return
				}
				http.Error(w, "no, "+req.Method+" "+req.URL.String(), http.StatusProxyAuthRequired)
			})
			reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{secretUser: secretPassword}, Bearer: true}})
			u := loggedIn(t, reg.Host)
			newModel(map[string]string{"model/w.bin": random("w", 300_000)}).write(t, u.path("m.carton"))
			u.must(t, "push", "m.carton", reg.Host+"/org/m:1")
			if a.effect != nil {
				reg.Break(registrytest.Fault{Path: a.path, Times: -1, Effect: a.effect(other)})
			}
			host := reg.Host
			if a.env != nil {
				u.env = append(u.env, a.env(other)...)
				host = "registry.invalid"
			}
			for _, args := range [][]string{
				{"pull", host + "/org/m:1", "-o", "out.carton", "--debug"},
				{"inspect", host + "/org/m:1", "--format", "json", "--debug"},
				{"push", "m.carton", host + "/org/new:1", "--image", "--image-subject", "--debug"},
				{"login", host, "-u", secretUser, "--password-stdin", "--debug"},
				{"pull", "https://" + secretUser + ":" + secretPassword + "@" + host + "/m.carton?" + secretQuery, "-o", "web.carton", "--debug"},
			} {
				u.stdin = secretPassword + "\n"
				r := u.run(t, append(args, a.flags...)...)
				runs.Add(1)
				places := map[string]string{"standard output": r.stdout, "standard error": r.stderr, "the cache": remembered(t, u)}
				for i, request := range other.seen() {
					if a.env == nil {
						places[fmt.Sprintf("request %d to another host", i)] = request
					}
				}
				for place, text := range places {
					secrets := append(secretsOf(reg), cookie)
					if strings.HasPrefix(place, "standard") {
						secrets = append(secrets, secretQuery)
					}
					for _, s := range secrets {
						if strings.Contains(text, s) {
							leaks.Add(1)
							t.Errorf("%v: %s has the secret %q:\n%s", args, place, s, text)
						}
					}
				}
			}
		})
	}
}

// TestLoginFile: the file of credentials is the user's alone, whatever it was.
func TestLoginFile(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{secretUser: secretPassword}}})
	u := newUser(t)
	file := filepath.Join(u.home, ".docker", "config.json")
	writeFile(t, file, `{}`)
	if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // the test is about it
		t.Fatal(err)
	}
	u.stdin = secretPassword + "\r\nmore\n"
	u.must(t, "login", reg.Host, "-u", secretUser, "--password-stdin")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	b, err := os.ReadFile(file)
	if want := base64.StdEncoding.EncodeToString([]byte(secretUser + ":" + secretPassword)); err != nil || !strings.Contains(string(b), want) {
		t.Errorf("the file holds another password than the first line: %s", b)
	}
}
