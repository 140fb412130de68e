package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// writeConfig writes a Docker configuration and returns its name.
func writeConfig(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func entry(user, password string) string {
	return fmt.Sprintf(`{"auth":%q}`, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestDockerCredentialsFile(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for _, tt := range []struct{ flag, containers, docker, want string }{
		{"/a/b.json", "/c/auth.json", "/d", "/a/b.json"},
		{"", "/c/auth.json", "/d", "/c/auth.json"},
		{"", "", "/d", "/d/config.json"},
		{"", "", "", "/home/someone/.docker/config.json"},
	} {
		t.Setenv("REGISTRY_AUTH_FILE", tt.containers)
		t.Setenv("DOCKER_CONFIG", tt.docker)
		if got := DockerCredentials(tt.flag).File(); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	t.Setenv("HOME", "")
	c := DockerCredentials("")
	if got, err := c.Credential(t.Context(), "ghcr.io"); got != auth.EmptyCredential || err != nil {
		t.Errorf("without a home: got %v, %v", got, err)
	}
	_, err := c.put(t.Context(), "ghcr.io", auth.Credential{Username: "u", Password: "p"})
	checkError(t, err, ErrCredentials, "no home folder", "")
}

func TestCredentialLookup(t *testing.T) {
	config := fmt.Sprintf(`{"auths":{
		"ghcr.io": %s, "ghcr.io/org": %s, "ghcr.io/org/m": %s,
		"https://index.docker.io/v1/": %s, "docker.io/org": %s,
		"https://old.example/v2/": %s, "localhost:5000": %s, "empty.example": {},
		"identity.example": {"identitytoken":"it"}, "bearer.example": {"registrytoken":"rt"},
		"plain.example": {"username":"pu","password":"pp"},
		"padded.example": {"auth":%q}
	}}`, entry("gh", "1"), entry("org", "2"), entry("m", "3"), entry("hub", "4"), entry("huborg", "5"), entry("old", "6"), entry("local", "a:b:c"),
		base64.StdEncoding.EncodeToString([]byte("u:p\x00\x00")))
	c := DockerCredentials(writeConfig(t, config))
	for _, tt := range []struct {
		host, repository string
		want             auth.Credential
	}{
		{"ghcr.io", "", auth.Credential{Username: "gh", Password: "1"}},
		{"ghcr.io", "other/m", auth.Credential{Username: "gh", Password: "1"}},
		{"ghcr.io", "organ/m", auth.Credential{Username: "gh", Password: "1"}},
		{"ghcr.io", "org/x", auth.Credential{Username: "org", Password: "2"}},
		{"ghcr.io", "org/m", auth.Credential{Username: "m", Password: "3"}},
		{"ghcr.io", "org/m/deeper", auth.Credential{Username: "m", Password: "3"}},
		{"registry-1.docker.io", "library/x", auth.Credential{Username: "hub", Password: "4"}},
		{"registry-1.docker.io", "org/x", auth.Credential{Username: "huborg", Password: "5"}},
		{"old.example", "m", auth.Credential{Username: "old", Password: "6"}},
		{"localhost:5000", "m", auth.Credential{Username: "local", Password: "a:b:c"}},
		{"localhost", "m", auth.EmptyCredential},
		{"localhost:5001", "m", auth.EmptyCredential},
		{"empty.example", "m", auth.EmptyCredential},
		{"identity.example", "m", auth.Credential{RefreshToken: "it"}},
		{"bearer.example", "m", auth.Credential{AccessToken: "rt"}},
		{"plain.example", "m", auth.Credential{Username: "pu", Password: "pp"}},
		{"padded.example", "m", auth.Credential{Username: "u", Password: "p"}},
		{"io", "m", auth.EmptyCredential},
		{"example", "m", auth.EmptyCredential},
	} {
		got, err := c.Credential(withRepository(t.Context(), tt.repository), tt.host)
		if err != nil || got != tt.want {
			t.Errorf("%s/%s: got %v, %v; want %v", tt.host, tt.repository, got, err, tt.want)
		}
	}
}

// TestCredentialFiles: what is wrong with a file is said without its content.
func TestCredentialFiles(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("hunter2"))
	for name, tt := range map[string]struct{ content, says string }{
		"empty":        {"", ""},
		"blank":        {" \n", ""},
		"no JSON":      {"hunter2", "want Docker's JSON"},
		"an array":     {`["hunter2"]`, "want Docker's JSON"},
		"wrong type":   {`{"auths":{"ghcr.io":"hunter2"}}`, "want Docker's JSON"},
		"cut":          {`{"auths":{"ghcr.io":{"auth":"hunter2`, "want Docker's JSON"},
		"not base64":   {`{"auths":{"ghcr.io":{"auth":"hunter2!"}}}`, "unreadable"},
		"no colon":     {`{"auths":{"ghcr.io":{"auth":"` + secret + `"}}}`, "unreadable"},
		"other fields": {`{"HttpHeaders":{"X":"y"},"auths":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeConfig(t, tt.content)
			cred, err := DockerCredentials(file).Credential(t.Context(), "ghcr.io")
			if tt.says == "" {
				if err != nil || cred != auth.EmptyCredential {
					t.Errorf("got %v, %v", cred, err)
				}
				return
			}
			checkError(t, err, ErrCredentials, tt.says, "")
			if !strings.Contains(err.Error(), file) {
				t.Errorf("%v does not name the file", err)
			}
			for _, s := range []string{"hunter2", secret} {
				if strings.Contains(err.Error()+fmt.Sprint(hint.Of(err)), s) {
					t.Errorf("%v holds the secret", err)
				}
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		_, err := DockerCredentials(t.TempDir()).Credential(t.Context(), "ghcr.io")
		checkError(t, err, ErrCredentials, "read credentials", "")
	})
}

// TestBrokenConfigIsLazy: a broken file is in nobody's way who needs none.
func TestBrokenConfigIsLazy(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	creds := DockerCredentials(writeConfig(t, "{"))
	repo := dial(t, reg, "org/m", Options{Credential: creds.Credential})
	if _, err := repo.Stat(t.Context(), reg.AddBlob("org/m", nil).Digest); err != nil {
		t.Error(err)
	}
	locked := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers}})
	repo = dial(t, locked, "org/m", Options{Credential: creds.Credential})
	_, err := repo.Stat(t.Context(), testDigest)
	checkError(t, err, ErrCredentials, "want Docker's JSON", "registry.DockerCredentials")
}

// TestCredentialPerRepository: two accounts of one host, by repository.
func TestCredentialPerRepository(t *testing.T) {
	for _, bearer := range []bool{false, true} {
		reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: bearer}})
		creds := DockerCredentials(writeConfig(t, fmt.Sprintf(`{"auths":{"%s/a":%s,"%s/b":%s}}`, reg.Host, entry("u", "p"), reg.Host, entry("x", "wrong"))))
		c, err := NewClient(Options{Credential: creds.Credential, Policy: quick})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		a, _ := c.Repository(reg.Host, "a/m")
		b, _ := c.Repository(reg.Host, "b/m")
		if _, err := a.Stat(t.Context(), reg.AddBlob("a/m", nil).Digest); err != nil {
			t.Error(err)
		}
		_, err = b.Stat(t.Context(), reg.AddBlob("b/m", nil).Digest)
		checkError(t, err, ErrUnauthorized, "401", "registry.Client.Login")
	}
}

// helperProgram puts docker-credential-test on PATH. It logs what it was asked.
func helperProgram(t *testing.T, script string) (log string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		testenv.NotChecked(t, "the credential helpers of these tests are shell scripts")
	}
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	script = "#!/bin/sh\naccount=$(cat)\necho \"$1 $account\" >> " + log + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return log
}

func TestHelper(t *testing.T) {
	const found = `echo '{"ServerURL":"x","Username":"hu","Secret":"hunter2"}'`
	global := `{"credsStore":"test","auths":{"ghcr.io":` + entry("file", "p") + `}}`
	single := `{"credHelpers":{"ghcr.io":"test"}}`
	tests := map[string]struct {
		config, script string
		want           auth.Credential
		says           string
	}{
		"for all":        {config: global, script: found, want: auth.Credential{Username: "hu", Password: "hunter2"}},
		"for one":        {config: single, script: found, want: auth.Credential{Username: "hu", Password: "hunter2"}},
		"for another":    {config: `{"credHelpers":{"quay.io":"test"}}`, script: found},
		"identity token": {config: single, script: `echo '{"Username":"<token>","Secret":"hunter2"}'`, want: auth.Credential{RefreshToken: "hunter2"}},
		"not found":      {config: single, script: `echo credentials not found in native keychain; exit 1`},
		"not found, but in the file": {
			config: global, script: `echo credentials not found in native keychain; exit 1`,
			want: auth.Credential{Username: "file", Password: "p"},
		},
		"missing":     {config: `{"credsStore":"missing-for-sure"}`, says: "docker-credential-missing-for-sure: there is no such program"},
		"a path":      {config: `{"credsStore":"../evil"}`, says: `"../evil"`},
		"fails":       {config: single, script: `echo the keychain is locked; exit 1`, says: "docker-credential-test: the keychain is locked"},
		"mute":        {config: single, script: `exit 0`, says: "something else than JSON"},
		"fails mute":  {config: single, script: `exit 3`, says: "exit status 3"},
		"junk":        {config: single, script: `echo hunter2`, says: "docker-credential-test"},
		"leaks":       {config: single, script: found + `; exit 1`, says: "not shown"},
		"terminal":    {config: single, script: `printf '\033[31mred\nline\n'; exit 1`, says: "[31mred line"},
		"stderr":      {config: single, script: `printf '\033[31mred\nline\n' >&2; exit 1`, says: "[31mred line"},
		"endless":     {config: single, script: `exec yes`, says: "printed more than 1048576 bytes"},
		"endless log": {config: single, script: `exec yes >&2`, says: "printed more than 1048576 bytes"},
		"endless child": {
			config: single, script: `yes & wait`, says: "printed more than 1048576 bytes",
		},
		"leaves a daemon": {config: single, script: found + `; sleep 60 & exit 0`, want: auth.Credential{Username: "hu", Password: "hunter2"}},
		"no JSON, no end": {config: single, script: `exec yes '{'`, says: "printed more than"},
		"hangs":           {config: single, script: `exec sleep 60`, says: "no answer within 300ms"},
		"child hangs":     {config: single, script: `sleep 5`, says: "no answer within 300ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "hangs") {
				defer func(d time.Duration) { helperTimeout = d }(helperTimeout)
				helperTimeout = 300 * time.Millisecond
			}
			log := helperProgram(t, tt.script)
			got, err := DockerCredentials(writeConfig(t, tt.config)).Credential(t.Context(), "ghcr.io")
			if tt.says != "" {
				checkError(t, err, ErrCredentials, tt.says, "")
				if strings.Contains(err.Error(), "hunter2") || strings.ContainsRune(err.Error(), 0x1b) {
					t.Errorf("%q holds the secret, or codes for the terminal", err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
			if b, _ := os.ReadFile(log); name != "for another" && string(b) != "get ghcr.io\n" {
				t.Errorf("the helper was asked %q", b)
			}
		})
	}
	t.Run("Docker Hub", func(t *testing.T) {
		log := helperProgram(t, found)
		c := DockerCredentials(writeConfig(t, `{"credsStore":"test"}`))
		if _, err := c.Credential(t.Context(), hubAPI); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(log); string(b) != "get https://index.docker.io/v1/\n" {
			t.Errorf("the helper was asked %q", b)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		helperProgram(t, "exec sleep 60")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
		defer cancel()
		if _, err := DockerCredentials(writeConfig(t, single)).Credential(ctx, "ghcr.io"); err == nil {
			t.Error("got no error")
		}
	})
}

func FuzzCredentialFile(f *testing.F) {
	f.Add([]byte(`{"auths":{"ghcr.io":{"auth":"dTpw"}}}`))
	f.Add([]byte(`{"auths":{"https://ghcr.io/v1":{"auth":"dTpw"},"ghcr.io/org":{}}}`))
	f.Add([]byte(`{"auths":null,"credHelpers":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		conf := &authFile{}
		if json.Unmarshal(b, conf) != nil {
			return
		}
		key := conf.find("ghcr.io", "org/m")
		if key == "" {
			return
		}
		if _, rest, ok := strings.Cut(key, "://"); ok {
			key = rest
		}
		if host, _, _ := strings.Cut(key, "/"); host != "ghcr.io" {
			t.Fatalf("the entry %q was taken for ghcr.io", key)
		}
	})
}
