package testregistry

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	issuer  = "token server of a test"
	service = "registry of a test"
	keyID   = "key of a test"
)

// tokenServer hands out bearer tokens, as
// https://distribution.github.io/distribution/spec/auth/token/ says.
type tokenServer struct {
	realm         string
	jwks          string // file with the public key
	signer        jose.Signer
	users         map[string]string
	anonymousPull bool
}

func newTokenServer(t testing.TB, url string, opts Options) *tokenServer {
	t.Helper()
	key := newKey(t)
	private := jose.JSONWebKey{Key: key, KeyID: keyID, Algorithm: string(jose.ES256)}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{private.Public()}})
	if err != nil {
		t.Fatal(err)
	}
	jwks := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(jwks, set, 0o600); err != nil {
		t.Fatal(err)
	}
	return &tokenServer{
		realm: url + "/token", jwks: jwks, signer: signer,
		users: opts.Users, anonymousPull: opts.AnonymousPull,
	}
}

// parameters are the registry's, so that it trusts the tokens.
func (s *tokenServer) parameters() map[string]any {
	return map[string]any{"realm": s.realm, "issuer": issuer, "service": service, "jwks": s.jwks}
}

// access is one entry of a token's claim: what may be done with what.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, known := r.BasicAuth()
	if known && (s.users[user] == "" || s.users[user] != password) || !known && !s.anonymousPull {
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`,
			http.StatusUnauthorized)
		return
	}
	grants := []access{}
	for _, scope := range r.URL.Query()["scope"] {
		for part := range strings.FieldsSeq(scope) {
			grants = append(grants, s.grant(part, known))
		}
	}
	now := time.Now()
	token, err := jwt.Signed(s.signer).Claims(map[string]any{
		"iss": issuer, "aud": service, "sub": user, "jti": now.String(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"access": grants,
	}).Serialize()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token, "expires_in": 3600})
}

// grant returns what is granted of one scope, as repository:org/m:pull,push.
func (s *tokenServer) grant(scope string, known bool) access {
	first, last := strings.Index(scope, ":"), strings.LastIndex(scope, ":")
	if first < 0 || first == last {
		return access{}
	}
	a := access{Type: scope[:first], Name: scope[first+1 : last], Actions: strings.Split(scope[last+1:], ",")}
	if !known {
		a.Actions = slices.DeleteFunc(a.Actions, func(action string) bool { return action != "pull" })
	}
	return a
}
