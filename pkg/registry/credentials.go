package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Credentials are those that Docker, Podman and their like keep: in a JSON file,
// and in the helper programs that it names. Nothing is read before it is
// needed, so that a broken file does not stand in the way of who needs none.
//
// https://docs.docker.com/reference/cli/docker/login/#credential-stores
type Credentials struct {
	file string
	// containers says that the file is Podman's auth.json: the same form, but
	// Docker Hub goes by its name.
	containers bool
}

// DockerCredentials returns the credentials in configFile; with "", those in
// $REGISTRY_AUTH_FILE, else in $DOCKER_CONFIG/config.json, else in
// ~/.docker/config.json. The file need not exist.
func DockerCredentials(configFile string) *Credentials {
	if configFile != "" {
		return &Credentials{file: configFile}
	}
	if f := os.Getenv("REGISTRY_AUTH_FILE"); f != "" {
		return &Credentials{file: f, containers: true}
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return &Credentials{}
		}
		dir = filepath.Join(home, ".docker")
	}
	return &Credentials{file: filepath.Join(dir, "config.json")}
}

// File returns the name of the file, "" where the user has no home.
func (c *Credentials) File() string { return c.file }

// Credential is an auth.CredentialFunc: it returns what is kept for a host, with
// the port where there is one, auth.EmptyCredential where that is nothing. An
// entry for a part of the host ("ghcr.io/org") counts for the repositories
// under it, the longest first. Errors wrap [ErrCredentials] and hold no secret.
func (c *Credentials) Credential(ctx context.Context, hostport string) (auth.Credential, error) {
	conf, err := c.read()
	if err != nil {
		return auth.EmptyCredential, err
	}
	host := userHost(hostport)
	if helper := conf.helper(host); helper != "" {
		cred, err := runHelper(ctx, helper, "get", c.account(host), auth.EmptyCredential)
		if err != nil || cred != auth.EmptyCredential {
			return cred, err
		}
	}
	repository, _ := ctx.Value(repositoryKey{}).(string)
	key := conf.find(host, repository)
	if key == "" {
		return auth.EmptyCredential, nil
	}
	store, err := c.open()
	if err != nil {
		return auth.EmptyCredential, err
	}
	cred, err := store.Get(ctx, key)
	if err != nil { // its text may hold what it could not read
		return auth.EmptyCredential, failCredentials(
			"read credentials for %s: %s: got an entry that is unreadable, want user:password in base64", host, c.file)
	}
	cred.Password = strings.Trim(cred.Password, "\x00") // old versions of Docker filled it up
	secret.AddLogin(cred.Username, cred.Password)
	secret.Add(cred.RefreshToken, cred.AccessToken)
	return cred, nil
}

// account returns the key of a host's credentials.
func (c *Credentials) account(host string) string {
	if host == hubName && !c.containers {
		return hubAccount
	}
	return host
}

// authFile is what has to be known of the file to choose an account in it.
type authFile struct {
	Auths map[string]struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

const maxAuthFileBytes = 16 << 20

func (c *Credentials) read() (*authFile, error) {
	conf := &authFile{}
	if c.file == "" {
		return conf, nil
	}
	b, err := localfile.Read(c.file, maxAuthFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return conf, nil
	case err != nil:
		return nil, failCredentials("read credentials: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && json.Unmarshal(b, conf) != nil {
		// The error of encoding/json may quote what it found.
		return nil, &credentialError{hint.With(
			fmt.Errorf("read credentials: %s: got something else, want Docker's JSON", c.file),
			"mend the file, or name another with %s", hint.RegistryConfig)}
	}
	return conf, nil
}

// open opens the file where it really is: it is replaced when it is written to.
func (c *Credentials) open() (*credentials.FileStore, error) {
	name, err := filepath.EvalSymlinks(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		name, err = c.file, nil
	}
	if err != nil {
		return nil, failCredentials("open credentials: %w", err)
	}
	store, err := credentials.NewFileStore(name)
	if err != nil { // its text may hold what it could not read
		return nil, failCredentials("open credentials: %s can't be read", c.file)
	}
	return store, nil
}

// helper returns the name of the program that keeps a host's credentials.
func (f *authFile) helper(host string) string {
	for _, key := range accountKeys(host) {
		if h := f.CredHelpers[key]; h != "" {
			return h
		}
	}
	return f.CredsStore
}

// accountKeys are the names that one host's account goes by.
func accountKeys(host string) []string {
	if host == hubName {
		return []string{hubAccount, hubName, hubAlias, hubAPI}
	}
	return []string{host}
}

// find returns the key of the entry for a repository: the longest that names it
// or a folder that it is in, then the host's; "" where there is none. Entries that
// hold nothing, as Docker writes them beside a helper, don't count.
func (f *authFile) find(host, repository string) string {
	var keys []string
	for name := repository; name != "" && name != "."; name = path.Dir(name) {
		keys = append(keys, host+"/"+name)
	}
	keys = append(keys, accountKeys(host)...)
	// Old versions of Docker wrote URLs, and others write what was typed.
	for _, key := range slices.Sorted(maps.Keys(f.Auths)) {
		name := key
		if _, rest, isURL := strings.Cut(key, "://"); isURL {
			name, _, _ = strings.Cut(rest, "/")
		}
		if userHost(name) == host {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if e := f.Auths[key]; e.Auth+e.Username+e.Password+e.IdentityToken+e.RegistryToken != "" {
			return key
		}
	}
	return ""
}

type repositoryKey struct{}

// withRepository tells a credential function which repository is meant.
func withRepository(ctx context.Context, repository string) context.Context {
	return context.WithValue(ctx, repositoryKey{}, repository)
}

// credentialError is a failure to find, keep or remove credentials.
type credentialError struct{ err error }

func (e *credentialError) Error() string   { return e.err.Error() }
func (e *credentialError) Unwrap() []error { return []error{ErrCredentials, e.err} }
func (*credentialError) Retryable() bool   { return false }

func failCredentials(format string, args ...any) error {
	return &credentialError{fmt.Errorf(format, args...)}
}

// Hosts returns the hosts that something is kept for in the file, sorted; helper
// programs are not asked. What can't be read has none.
func (c *Credentials) Hosts() []string {
	conf, err := c.read()
	if err != nil {
		return nil
	}
	hosts := map[string]bool{}
	for key := range conf.Auths {
		if _, rest, isURL := strings.Cut(key, "://"); isURL {
			key = rest
		}
		host, _, _ := strings.Cut(key, "/")
		hosts[userHost(host)] = host != ""
	}
	for key := range conf.CredHelpers {
		hosts[userHost(key)] = key != ""
	}
	return slices.Sorted(maps.Keys(hosts))
}
