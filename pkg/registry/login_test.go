package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

func TestLogin(t *testing.T) {
	ctx := t.Context()
	good := auth.Credential{Username: "u", Password: "p"}
	for name, conf := range map[string]registrytest.Auth{
		"basic":          {Users: twoUsers},
		"bearer":         {Users: twoUsers, Bearer: true},
		"lets anyone in": {Users: twoUsers, OpenFront: true},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Auth: conf})
			c, err := NewClient(Options{Policy: quick})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			file := filepath.Join(t.TempDir(), "new", "config.json")
			store := DockerCredentials(file)

			_, err = c.Login(ctx, store, reg.Host, auth.Credential{Username: "u", Password: "wrong"})
			checkError(t, err, ErrUnauthorized, "401", "")
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v holds the password", err)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("wrong credentials were stored")
			}

			warning, err := c.Login(ctx, store, reg.Host, good)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(warning, file) {
				t.Errorf("got the warning %q", warning)
			}
			info, err := os.Stat(file)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file has mode %v, want 0600 (%v)", info.Mode(), err)
			}
			if got, err := store.Credential(ctx, reg.Host); err != nil || got != good {
				t.Errorf("got %v, %v back", got, err)
			}

			for _, want := range []bool{true, false} {
				if got, err := store.Logout(ctx, reg.Host); got != want || err != nil {
					t.Errorf("Logout = %v, %v; want %v", got, err, want)
				}
			}
			if got, err := store.Credential(ctx, reg.Host); err != nil || got != auth.EmptyCredential {
				t.Errorf("after logout: got %v, %v", got, err)
			}
		})
	}
}

// TestLoginInCapitals: however a registry is spelt, references find what login
// keeps, and logout removes it, also what another program kept by that spelling.
func TestLoginInCapitals(t *testing.T) {
	ctx := t.Context()
	reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers}})
	typed := strings.Replace(strings.ToUpper(reg.Host), "127.0.0.1", "LocalHost", 1)
	host := strings.ToLower(typed)
	c, err := NewClient(Options{Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good := auth.Credential{Username: "u", Password: "p"}
	store := DockerCredentials(filepath.Join(t.TempDir(), "config.json"))
	if _, err := c.Login(ctx, store, typed, good); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Credential(ctx, host); got != good || err != nil {
		t.Errorf("for %s: got %v, %v", host, got, err)
	}
	if ok, err := store.Logout(ctx, typed); !ok || err != nil {
		t.Errorf("Logout = %v, %v", ok, err)
	}
	others := DockerCredentials(writeConfig(t, `{"auths":{"GHCR.IO":`+entry("u", "p")+`}}`))
	if got, err := others.Credential(ctx, "ghcr.io"); got != good || err != nil {
		t.Errorf("another program's spelling: got %v, %v", got, err)
	}
	if ok, err := others.Logout(ctx, "ghcr.io"); !ok || err != nil {
		t.Errorf("another program's spelling: Logout = %v, %v", ok, err)
	}
}

// TestLoginKeeps: what else the file holds stays, and so does a symlink to it.
func TestLoginKeeps(t *testing.T) {
	ctx := t.Context()
	file := writeConfig(t, `{"HttpHeaders":{"X":"y"},"auths":{"quay.io":`+entry("q", "q")+`},"detachKeys":"ctrl-e"}`)
	link := filepath.Join(t.TempDir(), "config.json")
	if err := os.Symlink(file, link); err != nil {
		testenv.NotChecked(t, "no symlink can be made: %v", err)
	}
	store := DockerCredentials(link)
	if _, err := store.put(ctx, hubName, auth.Credential{Username: "u", Password: "p"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the symlink was replaced")
	}
	var got map[string]json.RawMessage
	b, _ := os.ReadFile(file)
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got["HttpHeaders"] == nil || string(got["detachKeys"]) != `"ctrl-e"` || !strings.Contains(string(got["auths"]), "quay.io") {
		t.Errorf("the file became %s", b)
	}
	if !strings.Contains(string(got["auths"]), hubAccount) {
		t.Errorf("Docker would not find Docker Hub in %s", b)
	}
	if cred, err := store.Credential(ctx, hubAPI); err != nil || cred.Username != "u" {
		t.Errorf("got %v, %v", cred, err)
	}
	if ok, err := store.Logout(ctx, "docker.io"); !ok || err != nil {
		t.Errorf("Logout = %v, %v", ok, err)
	}
	if cred, err := store.Credential(ctx, "quay.io"); err != nil || cred.Username != "q" {
		t.Errorf("the other account: got %v, %v", cred, err)
	}
}

// TestLoginContainers: Podman's file calls Docker Hub by its name.
func TestLoginContainers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.json")
	t.Setenv("REGISTRY_AUTH_FILE", file)
	store := DockerCredentials("")
	if _, err := store.put(t.Context(), hubName, auth.Credential{Username: "u", Password: "p"}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(file); !strings.Contains(string(b), `"docker.io"`) {
		t.Errorf("the file is %s", b)
	}
}

func TestLoginHelper(t *testing.T) {
	ctx := t.Context()
	log := helperProgram(t, `[ $1 = get ] && echo '{"Username":"hu","Secret":"hs"}'; exit 0`)
	file := writeConfig(t, `{"credsStore":"test"}`)
	before, _ := os.ReadFile(file)
	store := DockerCredentials(file)
	warning, err := store.put(ctx, "ghcr.io", auth.Credential{Username: "u", Password: "hunter2"})
	if err != nil || warning != "" {
		t.Errorf("put = %q, %v; want no warning", warning, err)
	}
	if ok, err := store.Logout(ctx, "GHCR.io"); !ok || err != nil {
		t.Errorf("Logout = %v, %v", ok, err)
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Errorf("the file became %s", after)
	}
	b, _ := os.ReadFile(log)
	if got := string(b); !strings.HasPrefix(got, `store {"ServerURL":"ghcr.io","Username":"u","Secret":"hunter2"}`) || !strings.HasSuffix(got, "erase ghcr.io\n") {
		t.Errorf("the helper was asked %q", got)
	}

	helperProgram(t, `echo 'can not store {"Secret":"hunter2"}'; exit 1`)
	_, err = store.put(ctx, "ghcr.io", auth.Credential{Username: "u", Password: "hunter2"})
	checkError(t, err, ErrCredentials, "store credentials for ghcr.io", "config.json")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v holds the secret", err)
	}
}

func TestLoginRefused(t *testing.T) {
	ctx := t.Context()
	c, err := NewClient(Options{Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, host := range []string{"", "ghcr.io/org", "https://ghcr.io", "a b"} {
		_, err := c.Login(ctx, DockerCredentials("/nonexistent"), host, auth.Credential{})
		checkError(t, err, ErrReference, "want", "")
	}
	reg := registrytest.New(t, registrytest.Config{})
	reg.Break(registrytest.Fault{Times: -1, Effect: registrytest.Answer(404, "")})
	_, err = c.Login(ctx, DockerCredentials(""), reg.Host, auth.Credential{Username: "u", Password: "p"})
	checkError(t, err, nil, "404", "")

	store := DockerCredentials(writeConfig(t, "{"))
	_, err = store.put(ctx, "ghcr.io", auth.Credential{Username: "u", Password: "p"})
	checkError(t, err, ErrCredentials, "want Docker's JSON", "")
	_, err = store.Logout(ctx, "ghcr.io")
	checkError(t, err, ErrCredentials, "want Docker's JSON", "")
	_, err = DockerCredentials(filepath.Join(t.TempDir(), "c.json")).put(ctx, "ghcr.io", auth.Credential{Username: "a:b", Password: "p"})
	checkError(t, err, ErrCredentials, "colon", "")
}
