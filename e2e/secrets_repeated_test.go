package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// TestServersThatRepeatSecrets: who was sent a secret says it again, wherever it
// may say anything. Nothing that is printed has it, nor what is remembered.
func TestServersThatRepeatSecrets(t *testing.T) {
	both := secretUser + ":" + secretPassword
	said := func(req *http.Request) string {
		header := req.Header.Get("Authorization")
		_, token, _ := strings.Cut(header, " ")
		return strings.Join([]string{
			header, token, secretPassword, both, url.QueryEscape(both), base64.URLEncoding.EncodeToString([]byte(both)), url.PathEscape(token),
		}, " ")
	}
	fault := func(path string, effect registrytest.Effect) registrytest.Fault {
		return registrytest.Fault{Path: path, Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			if req.Header.Get("Authorization") == "" {
				next.ServeHTTP(w, req) // which asks for it
				return
			}
			effect(w, req, next)
		}}
	}
	answers := map[string]registrytest.Fault{
		"an error": fault("/v2/org/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": said(req), "message": said(req)}}})
		}),
		"an error in plain text": fault("/v2/org/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, strings.Repeat("x", 150)+said(req))
		}),
		"a token server's error": fault("/token", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": "DENIED", "message": said(req)}}, "details": said(req)})
		}),
		"a digest": fault("/manifests/", func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			w.Header().Set("Docker-Content-Digest", "sha256:"+said(req))
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprint(w, "{}")
		}),
		"a media type": fault("/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
			w.Header().Set("Content-Type", "x/"+token)
			fmt.Fprintf(w, `{"mediaType":%q}`, said(req))
		}),
		"an artifactType": fault("/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			b, _ := json.Marshal(map[string]any{
				"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": said(req), "layers": []any{},
				"config":      map[string]any{"mediaType": said(req), "digest": "sha256:" + strings.Repeat("a", 64), "size": 2},
				"annotations": map[string]string{said(req): said(req)},
			})
			_, _ = w.Write(b)
		}),
		"an index": fault("/manifests/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			b, _ := json.Marshal(map[string]any{
				"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
				"manifests": []any{map[string]any{"mediaType": said(req), "artifactType": said(req), "digest": "sha256:" + strings.Repeat("a", 64), "size": 2}},
			})
			_, _ = w.Write(b)
		}),
		"a redirect": fault("/v2/org/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
			w.Header().Set("Location", "http://"+url.PathEscape(token)+".invalid/"+url.PathEscape(secretPassword)+"?"+url.QueryEscape(token))
			w.WriteHeader(http.StatusTemporaryRedirect)
		}),
		"another scheme": fault("/v2/org/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
			w.Header().Set("Location", "x"+strings.ToLower(secretPassword)+"://"+url.PathEscape(token))
			w.WriteHeader(http.StatusTemporaryRedirect)
		}),
		"a challenge": fault("/v2/org/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", "ftp://"+said(req), said(req)))
			w.WriteHeader(http.StatusUnauthorized)
		}),
		"a range": fault("/blobs/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("Content-Range", said(req))
			w.Header().Set("Content-Encoding", said(req))
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, said(req))
		}),
		"an upload's address": fault("/uploads/", func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
			w.Header().Set("Location", "http://"+url.PathEscape(token)+"/"+secretPassword)
			w.WriteHeader(http.StatusAccepted)
		}),
		"a refused manifest": {Methods: "PUT", Path: "/manifests/", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"code": "MANIFEST_INVALID", "message": "no", "detail": map[string]string{"description": said(req)}}}})
		}},
		"a digest of what was stored": {Methods: "PUT", Path: "/v2/", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.Header().Set("Docker-Content-Digest", said(req))
			w.WriteHeader(http.StatusCreated)
		}},
	}
	var leaks, runs atomic.Int64
	t.Cleanup(func() {
		testenv.Checked(t, int(runs.Load()), "%d commands at servers that repeat secrets, %d secrets printed", runs.Load(), leaks.Load())
	})
	for _, bearer := range []bool{false, true} {
		for name, f := range answers {
			t.Run(fmt.Sprintf("%s bearer=%v", name, bearer), func(t *testing.T) {
				t.Parallel() // many wait to try again
				reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{secretUser: secretPassword}, Bearer: bearer}})
				u := loggedIn(t, reg.Host)
				newModel(map[string]string{"model/w.bin": random("w", 300_000)}).write(t, u.path("m.carton"))
				u.must(t, "push", "m.carton", reg.Host+"/org/m:1")
				reg.Break(f)
				for _, args := range [][]string{
					{"pull", reg.Host + "/org/m:1", "-o", "out.carton", "--debug"},
					{"inspect", reg.Host + "/org/m:1", "--format", "json"},
					{"resolve", reg.Host + "/org/m:1", "--format", "json"},
					{"resolve", reg.Host + "/org/m:1"},
					{"ls", reg.Host + "/org/m:1"},
					{"push", "m.carton", reg.Host + "/org/new:1", "--debug"},
					{"push", reg.Host + "/org/m:1", reg.Host + "/org/copy:1"},
					{"image", reg.Host + "/org/m:1"},
				} {
					r := u.run(t, args...)
					runs.Add(1)
					secrets := append(secretsOf(reg), url.QueryEscape(both), base64.URLEncoding.EncodeToString([]byte(both)))
					for place, text := range map[string]string{"standard output": r.stdout, "standard error": r.stderr, "the cache": remembered(t, u)} {
						for _, s := range secrets {
							if len(s) > 3 && strings.Contains(text, s) {
								leaks.Add(1)
								t.Errorf("%v: %s has the secret %q:\n%s", args, place, s, text)
							}
						}
					}
				}
			})
		}
	}
}
