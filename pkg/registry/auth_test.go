package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func static(user, password string) auth.CredentialFunc {
	return func(context.Context, string) (auth.Credential, error) {
		return auth.Credential{Username: user, Password: password}, nil
	}
}

var twoUsers = map[string]string{"u": "p", "x": "y"}

// TestTokens: tokens are asked for with the right scopes, once.
func TestTokens(t *testing.T) {
	ctx := t.Context()
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true}})
	repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
	b := random(1, 1000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b := random(uint64(i), 1000)
			if err := repo.Push(ctx, layer(describeBytes(b), opener(b)), layout.Watch{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 3 {
		if _, err := repo.Stat(ctx, describeBytes(b).Digest); err != nil {
			t.Fatal(err)
		}
	}
	var scopes []string
	for _, rec := range reg.Requests() {
		if rec.Path == "/token" {
			scopes = append(scopes, rec.Query)
		}
		if rec.Path != "/token" && strings.HasPrefix(rec.Header.Get("Authorization"), "Basic") {
			t.Errorf("%s %s: the password went to a registry that wants a token", rec.Method, rec.Path)
		}
	}
	if len(scopes) > 3 { // eight at once may ask twice; the ninth asks no more
		t.Errorf("asked for %d tokens: %q", len(scopes), scopes)
	}
}

// TestTokenNewRepository: a registry that hides what does not exist yet shows
// it to who may create it, and to nobody else.
func TestTokenNewRepository(t *testing.T) {
	ctx := t.Context()
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true, HideNew: true}})
	repo := dial(t, reg, "org/new", Options{Credential: static("u", "p")})
	for range 2 {
		_, err := repo.Stat(ctx, testDigest)
		checkError(t, err, layout.ErrNotFound, "404", "")
		_, err = repo.Resolve(ctx, "1")
		checkError(t, err, layout.ErrNotFound, "404", "")
	}
	if got := reg.Count("HEAD|GET", testDigest); got > 7 { // of which the second time: 1
		t.Errorf("asked %d times: what was learnt is forgotten", got)
	}
	nobody := dial(t, reg, "org/new", Options{})
	_, err := nobody.Stat(ctx, testDigest)
	checkError(t, err, ErrUnauthorized, "401", "")
	stranger := dial(t, reg, "org/new", Options{Credential: static("u", "wrong")})
	_, err = stranger.Resolve(ctx, "1")
	checkError(t, err, ErrUnauthorized, "401", "")
}

// TestTokenAnonymous: a public repository is read without credentials.
func TestTokenAnonymous(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true, AnonymousPull: true}})
	repo := dial(t, reg, "org/m", Options{})
	desc := reg.AddBlob("org/m", []byte("x"))
	rc, err := repo.OpenRange(t.Context(), desc, 0, -1)
	if got := readAll(t, rc, err); string(got) != "x" {
		t.Errorf("got %q", got)
	}
	err = repo.Push(t.Context(), layer(describeBytes([]byte("y")), opener([]byte("y"))), layout.Watch{})
	checkError(t, err, ErrUnauthorized, "401", "registry.Client.Login "+reg.Host)
}

// TestTokenIdentity: an identity token is exchanged for tokens.
func TestTokenIdentity(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true, Refresh: map[string]string{"identity": "u"}}})
	repo := dial(t, reg, "org/m", Options{Credential: func(context.Context, string) (auth.Credential, error) {
		return auth.Credential{RefreshToken: "identity"}, nil
	}})
	if err := repo.Push(t.Context(), layer(describeBytes([]byte("y")), opener([]byte("y"))), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	if got := reg.Count("POST", "/token"); got == 0 {
		t.Error("the identity token was not exchanged")
	}
}

// TestTokenRefused covers the answers of registries and token servers that must
// not get a password out of us, or keep us going for ever.
func TestTokenRefused(t *testing.T) {
	spy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("a server that has no business with it was asked for a token, Authorization %q", req.Header.Get("Authorization"))
	}))
	defer spy.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(spy.URL, "http://"), ":")
	challenge := func(value string) *registrytest.Fault {
		return &registrytest.Fault{Path: "/v2/org/", Times: -1, Effect: registrytest.Answer(401, "", "WWW-Authenticate", value)}
	}
	tests := map[string]struct {
		tls    bool
		auth   registrytest.Auth
		break_ *registrytest.Fault
		kind   error
		says   string
	}{
		"http realm of an https registry": {tls: true, auth: registrytest.Auth{Users: twoUsers, Bearer: true, Realm: "http://127.0.0.1:" + port + "/token"}, says: "realm"},
		"private realm":                   {auth: registrytest.Auth{Users: twoUsers, Bearer: true, Realm: "http://169.254.169.254/token"}, says: "realm"},
		"loopback by another name":        {auth: registrytest.Auth{Users: twoUsers, Bearer: true, Realm: "http://localhost:" + port + "/token"}, says: "realm"},
		"file realm":                      {auth: registrytest.Auth{Users: twoUsers, Bearer: true, Realm: "file:///etc/passwd"}, says: "realm"},
		"no realm":                        {break_: challenge("Bearer"), says: ""},
		"unknown scheme":                  {break_: challenge(`Negotiate abc`), kind: ErrUnauthorized, says: "401"},
		"no challenge":                    {break_: &registrytest.Fault{Path: "/v2/org/", Times: -1, Effect: registrytest.Answer(401, "")}, kind: ErrUnauthorized, says: "401"},
		"a loop":                          {break_: challenge(`Basic realm="x"`), kind: ErrUnauthorized, says: "401"},
		"wrong password":                  {auth: registrytest.Auth{Users: map[string]string{"u": "other"}, Bearer: true}, kind: ErrUnauthorized, says: `"unauthorized: incorrect username or password"`},
		"5 MiB of token":                  {auth: registrytest.Auth{Users: twoUsers, Bearer: true}, break_: &registrytest.Fault{Path: "/token", Times: -1, Effect: registrytest.Answer(200, `{"token":"`+strings.Repeat("x", 5<<20)+`"}`)}, says: "token"},
		"no token":                        {auth: registrytest.Auth{Users: twoUsers, Bearer: true}, break_: &registrytest.Fault{Path: "/token", Times: -1, Effect: registrytest.Answer(200, `{}`)}, says: "empty token"},
		"token server moves away":         {auth: registrytest.Auth{Users: twoUsers, Bearer: true}, break_: &registrytest.Fault{Path: "/token", Times: -1, Effect: registrytest.Answer(307, "", "Location", "http://169.254.169.254/")}, says: "realm"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{TLS: tt.tls, Auth: tt.auth})
			policy := quick
			policy.Attempts = 2
			repo := dial(t, reg, "org/m", Options{Insecure: true, Credential: static("u", "p"), Policy: policy})
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			_, err := repo.Resolve(t.Context(), "1")
			checkError(t, err, tt.kind, tt.says, "")
			if strings.Contains(err.Error(), "password") && !strings.Contains(err.Error(), "username or password") {
				t.Errorf("%v shows too much", err)
			}
			if n := len(reg.Requests()); n > 12 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestCredentialHost: only the registry's own credentials are ever asked for.
func TestCredentialHost(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers}})
	var hosts []string
	repo := dial(t, reg, "org/m", Options{Credential: func(_ context.Context, host string) (auth.Credential, error) {
		hosts = append(hosts, host)
		return auth.Credential{Username: "u", Password: "p"}, nil
	}})
	if _, err := repo.Stat(t.Context(), reg.AddBlob("org/m", nil).Digest); err != nil {
		t.Fatal(err)
	}
	if len(hosts) != 1 || hosts[0] != reg.Host {
		t.Errorf("credentials of %q were asked for, want those of %s once", hosts, reg.Host)
	}
}

// TestErrorBodies: what a registry says is cut, cleaned and quoted.
func TestErrorBodies(t *testing.T) {
	quote := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	tests := map[string]struct {
		body, contentType, says string
	}{
		"two errors":    {body: `{"errors":[{"code":"DENIED","message":"no"},{"code":"UNSUPPORTED"}]}`, says: `403 Forbidden: "denied: no; unsupported"`},
		"token server":  {body: `{"details":"incorrect username or password"}`, says: `"incorrect username or password"`},
		"OAuth":         {body: `{"error":"invalid_grant","error_description":"x"}`, says: `"invalid_grant"`},
		"GitHub":        {body: `{"message":"package is private"}`, says: `"package is private"`},
		"text":          {body: "go away\n", contentType: "text/plain; charset=utf-8", says: `"go away"`},
		"a web page":    {body: "<html>go away</html>", contentType: "text/html", says: "403 Forbidden"},
		"nothing":       {says: "403 Forbidden"},
		"escapes":       {body: `{"errors":[{"code":"DENIED","message":` + quote("\x1b]0;title\x07\r\nforged line") + `}]}`, says: "forged line"},
		"code escapes":  {body: `{"errors":[{"code":` + quote("\x1b[2J") + `,"message":"x"}]}`, says: "[2j"},
		"wrong types":   {body: `{"errors":"x","message":5}`, says: "403 Forbidden"},
		"number":        {body: `5`, says: "403 Forbidden"},
		"cut in half":   {body: `{"errors":[{"code":"DENIED","message":"` + strings.Repeat("x", 10<<10) + `"}]}`, says: "403 Forbidden"},
		"a long line":   {body: `{"errors":[{"code":"DENIED","message":"` + strings.Repeat("x", 1000) + `"}]}`, says: "xxx…"},
		"nested detail": {body: `{"errors":[{"code":"DENIED","detail":{"a":{"b":1}}}]}`, says: `"denied"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			if tt.contentType == "" {
				tt.contentType = "application/json"
			}
			reg.Break(registrytest.Fault{Methods: "POST", Times: -1, Effect: registrytest.Answer(403, tt.body, "Content-Type", tt.contentType)})
			err := repo.Push(t.Context(), layer(describeBytes(nil), opener(nil)), layout.Watch{})
			checkError(t, err, ErrDenied, tt.says, "registry.Client.Login "+reg.Host)
			if strings.ContainsAny(err.Error(), "\x07\x1b") || len(err.Error()) > 700 {
				t.Errorf("got %d bytes: %.300q", len(err.Error()), err)
			}
		})
	}
}

func TestErrorKinds(t *testing.T) {
	for _, tt := range []struct {
		e    Error
		kind error
	}{
		{Error{Status: 401}, ErrUnauthorized},
		{Error{Status: 403}, ErrDenied},
		{Error{Status: 404}, layout.ErrNotFound},
		{Error{Status: 413}, layout.ErrLimit},
		{Error{Status: 400, Code: "DIGEST_INVALID"}, layout.ErrDigest},
		{Error{Status: 400}, nil},
		{Error{Status: 500}, nil},
	} {
		if got := tt.e.Unwrap(); !errors.Is(got, tt.kind) {
			t.Errorf("%v is %v, want %v", &tt.e, got, tt.kind)
		}
	}
	if got := (&Error{Host: "h", Status: 799}).Error(); got != "h answered 799" {
		t.Errorf("got %q", got)
	}
}
