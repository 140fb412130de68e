package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: no secret reaches a host it was not meant for, and none is in an
// error, a log, --debug, or what is remembered.

const (
	secretUser     = "ada"
	secretPassword = "correct-horse-battery"
	secretQuery    = "presigned-0123456789"
)

// recorder is a host that has no business with any secret, and keeps all that it
// is sent.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newRecorder(t *testing.T, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		dump, err := httputil.DumpRequest(req, true)
		r.mu.Lock()
		r.requests = append(r.requests, fmt.Sprintf("%s\n%v", dump, err))
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

// secretsOf returns what nobody but the registry may learn: the password, in
// every form, and the tokens that the registry gave out.
func secretsOf(reg *registrytest.Registry) []string {
	all := map[string]bool{
		secretPassword: true,
		base64.StdEncoding.EncodeToString([]byte(secretUser + ":" + secretPassword)): true,
	}
	for _, r := range reg.Requests() {
		if _, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
			all[token] = true
		}
	}
	var list []string
	for s := range all {
		list = append(list, s)
	}
	return list
}

// loggedIn returns a user whose Docker configuration has credentials for a host.
func loggedIn(t *testing.T, host string) *user {
	t.Helper()
	u := newUser(t)
	auth := base64.StdEncoding.EncodeToString([]byte(secretUser + ":" + secretPassword))
	writeFile(t, filepath.Join(u.home, ".docker", "config.json"), fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth))
	return u
}

func TestSecretsStayWhereTheyBelong(t *testing.T) {
	forbidden := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "nothing here", http.StatusForbidden) }
	moved := func(to *recorder) registrytest.Effect {
		return registrytest.Answer(http.StatusTemporaryRedirect, "", "Location", to.URL+"/x?sig="+secretQuery)
	}
	leaks, heard, runs := 0, 0, 0
	for name, c := range map[string]struct {
		conf  func(other *recorder) registrytest.Config
		fault func(other *recorder) *registrytest.Fault // once the model is there
		args  func(reg *registrytest.Registry, other *recorder) []string
		ends  int // the exit code
		asked bool

		further bool // the other host's redirect to the next one is followed
	}{
		"blobs at another host": {
			fault: func(o *recorder) *registrytest.Fault {
				return &registrytest.Fault{Methods: "GET", Path: "/blobs/", Times: -1, Effect: moved(o)}
			},
			args: pullOf, ends: notAllowed, asked: true, further: true,
		},
		"image manifests at another host": {
			fault: func(o *recorder) *registrytest.Fault {
				return &registrytest.Fault{Methods: "GET|HEAD", Path: "/manifests/", Times: -1, Effect: moved(o)}
			},
			args: pullOf, ends: notAllowed, asked: true, further: true,
		},
		"a realm at another host": {
			fault: func(o *recorder) *registrytest.Fault {
				realm := strings.Replace(o.URL, "127.0.0.1", "localhost", 1)
				return &registrytest.Fault{Path: "/v2/org/", Times: -1, Effect: registrytest.Answer(401, "", "WWW-Authenticate", `Bearer realm="`+realm+`/token",service="x"`)}
			},
			args: pullOf, ends: failed,
		},
		"a token server that moves": {
			fault: func(o *recorder) *registrytest.Fault {
				moved := registrytest.Answer(http.StatusTemporaryRedirect, "", "Location", strings.Replace(o.URL, "127.0.0.1", "localhost", 1)+"/token")
				return &registrytest.Fault{Path: "/token", Times: -1, Effect: moved}
			},
			args: pullOf, ends: failed,
		},
		"an upload at another host": {
			conf: func(o *recorder) registrytest.Config {
				return registrytest.Config{Quirks: registrytest.Quirks{Location: func(string) string { return o.URL + "/upload?state=" + secretQuery }}}
			},
			args: func(reg *registrytest.Registry, _ *recorder) []string {
				return []string{"push", "m.carton", reg.Host + "/org/new:1"}
			},
			ends: failed,
		},
		"links to another host": {
			args: func(_ *registrytest.Registry, o *recorder) []string {
				host := strings.TrimPrefix(o.URL, "http://")
				return []string{"pull", "./thin.carton", "--allow-link-host", host, "-o", "out.carton"}
			},
			ends: notAllowed, asked: true,
		},
		"a password in an address": {
			args: func(_ *registrytest.Registry, o *recorder) []string {
				return []string{"pull", strings.Replace(o.URL, "http://", "https://"+secretUser+":"+secretPassword+"@", 1) + "/m.carton?sig=" + secretQuery}
			},
			ends: failed,
		},
		"an error that repeats what it was sent": {
			fault: func(*recorder) *registrytest.Fault {
				return &registrytest.Fault{Path: "/blobs/", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
					w.WriteHeader(http.StatusBadRequest)
					_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": "X", "message": "no path " + req.URL.Path}}})
				}}
			},
			args: pullOf, ends: failed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			second := newRecorder(t, forbidden)
			other := newRecorder(t, func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, second.URL+"/further?sig="+secretQuery, http.StatusTemporaryRedirect)
			})
			var conf registrytest.Config
			if c.conf != nil {
				conf = c.conf(other)
			}
			conf.Auth = registrytest.Auth{Users: map[string]string{secretUser: secretPassword}, Bearer: true}
			reg := registrytest.New(t, conf)
			u := loggedIn(t, reg.Host)
			m := newModel(map[string]string{"model/w.bin": random("w", 300_000)})
			m.write(t, u.path("m.carton"))
			if c.conf == nil {
				u.must(t, "push", "m.carton", reg.Host+"/org/m:1")
				u.must(t, "pull", reg.Host+"/org/m:1", "--thin", "--link-base", other.URL+"/link", "-o", "thin.carton")
			}
			if c.fault != nil {
				reg.Break(*c.fault(other))
			}
			r := u.run(t, append(c.args(reg, other), "--debug")...)
			runs++
			if r.code != c.ends {
				t.Errorf("got exit code %d, want %d\n%s", r.code, c.ends, r.stderr)
			}
			heard += len(other.seen()) + len(second.seen())
			if c.further != (len(second.seen()) > 0) {
				t.Errorf("the host behind it got %d requests, want some: %v", len(second.seen()), c.further)
			}
			if c.asked != (len(other.seen()) > 0) {
				t.Errorf("the other host got %d requests, want some: %v", len(other.seen()), c.asked)
			}
			places := map[string]string{"standard output": r.stdout, "standard error": r.stderr, "the cache": remembered(t, u)}
			for i, request := range append(other.seen(), second.seen()...) {
				places[fmt.Sprintf("request %d to another host", i)] = request
			}
			for place, text := range places {
				secrets := secretsOf(reg)
				if strings.HasPrefix(place, "standard") {
					secrets = append(secrets, secretQuery)
				}
				for _, s := range secrets {
					if strings.Contains(text, s) {
						leaks++
						t.Errorf("%s has the secret %q:\n%s", place, s, text)
					}
				}
			}
		})
	}
	testenv.Checked(t, runs, "%d requests at hosts that have no business with a secret, %d secrets there or in any output", heard, leaks)
}

func pullOf(reg *registrytest.Registry, _ *recorder) []string {
	return []string{"pull", reg.Host + "/org/m:1", "-o", "out.carton"}
}

// remembered returns everything that the cache holds.
func remembered(t *testing.T, u *user) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(u.cache, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		all.Write(b)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return all.String()
}
