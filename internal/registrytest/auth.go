package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Auth says who may do what. The zero value lets anybody do anything.
type Auth struct {
	// Users are names and passwords. Where there are any, credentials are wanted.
	Users map[string]string
	// Bearer wants a token, which is had at /token for a user's name and
	// password; without it they are sent as Basic.
	Bearer bool
	// Refresh maps identity tokens to users, for /token by POST.
	Refresh map[string]string
	// TokenUses is how many requests a token is good for; 0 is any number.
	TokenUses int
	// Realm, where it is set, is what a challenge names instead of /token.
	Realm string
	// AnonymousPull lets anybody read, with a token where Bearer is set.
	AnonymousPull bool
	// Denied are repositories that no token is good for: 403.
	Denied []string
	// AnonymousBlobs serves the GET of a blob without any token, and nothing else.
	AnonymousBlobs bool
	// HideNew gives no token for an empty repository to who does not ask for the
	// right to push. [Quay]
	HideNew bool
	// OpenFront answers /v2/ without a challenge, but refuses wrong credentials.
	// [zot, with anonymous reading]
	OpenFront bool
}

type token struct {
	scopes []string
	uses   int
}

// allow answers a request that may not be, and returns false.
func (r *Registry) allow(w http.ResponseWriter, req *http.Request, repo string) bool {
	a := r.conf.Auth
	if slices.Contains(a.Denied, repo) {
		fail(w, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
		return false
	}
	read := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch {
	case len(a.Users) == 0:
		return true
	case a.AnonymousBlobs && req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/sha256:"):
		return true
	case a.Bearer:
		action := "push"
		if read && !strings.Contains(req.URL.Path, "/blobs/uploads/") {
			action = "pull"
		}
		if r.bearer(req, repo, action, true) {
			return true
		}
		r.challenge(w, repo, action)
		return false
	case read && a.AnonymousPull && repo != "", a.OpenFront && repo == "" && req.Header.Get("Authorization") == "":
		return true
	}
	if user, password, ok := req.BasicAuth(); ok && password != "" && a.Users[user] == password {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="registrytest"`)
	fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	return false
}

// mayPull reports whether a mount may read from another repository.
func (r *Registry) mayPull(req *http.Request, repo string) bool {
	a := r.conf.Auth
	return !slices.Contains(a.Denied, repo) && (!a.Bearer || len(a.Users) == 0 || r.bearer(req, repo, "pull", false))
}

func (r *Registry) empty(repo string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.blobs[repo]) == 0 && len(r.manifests[repo]) == 0
}

func (r *Registry) challenge(w http.ResponseWriter, repo, action string) {
	realm := r.conf.Auth.Realm
	if realm == "" {
		realm = r.URL + "/token"
	}
	value := fmt.Sprintf(`Bearer realm=%q,service="registrytest"`, realm)
	if repo != "" {
		actions := "pull"
		if action == "push" {
			actions = "pull,push"
		}
		value += fmt.Sprintf(`,scope="repository:%s:%s"`, repo, actions)
	}
	w.Header().Set("WWW-Authenticate", value)
	fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
}

// bearer reports whether a request's token is good for an action.
func (r *Registry) bearer(req *http.Request, repo, action string, use bool) bool {
	key, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tokens[key]
	if t == nil {
		return false
	}
	limit := r.conf.Auth.TokenUses
	if use && limit > 0 && t.uses >= limit {
		return false
	}
	if repo != "" && !slices.Contains(t.scopes, repo+":"+action) {
		return false
	}
	if use {
		t.uses++
	}
	return true
}

// ExpireTokens makes every token that was given out worthless.
func (r *Registry) ExpireTokens() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.tokens)
}

// serveToken is the token server.
// https://distribution.github.io/distribution/spec/auth/token/
func (r *Registry) serveToken(w http.ResponseWriter, req *http.Request) {
	a := r.conf.Auth
	if err := req.ParseForm(); err != nil {
		fail(w, http.StatusBadRequest, "UNSUPPORTED", "unreadable form")
		return
	}
	user, password, basic := req.BasicAuth()
	if refresh := req.PostForm.Get("refresh_token"); refresh != "" {
		user = a.Refresh[refresh]
		password, basic = a.Users[user], true
	}
	known := basic && password != "" && a.Users[user] == password
	if basic && !known || !basic && !a.AnonymousPull {
		fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "incorrect username or password")
		return
	}
	t := &token{}
	for _, scopes := range req.Form["scope"] {
		for scope := range strings.FieldsSeq(scopes) {
			parts := strings.Split(scope, ":")
			if len(parts) != 3 || parts[0] != "repository" {
				continue
			}
			if a.HideNew && !strings.Contains(parts[2], "push") && r.empty(parts[1]) {
				continue
			}
			for action := range strings.SplitSeq(parts[2], ",") {
				if known || action == "pull" {
					t.scopes = append(t.scopes, parts[1]+":"+action)
				}
			}
		}
	}
	r.mu.Lock()
	r.serial++
	key := fmt.Sprintf("token-%d", r.serial)
	r.tokens[key] = t
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"token": key, "access_token": key})
}
