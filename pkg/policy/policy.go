package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/BurntSushi/toml"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/tomlguard"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// ErrPolicy is wrapped by what is wrong with a policy.
var ErrPolicy = errors.New("the policy can't be used")

const (
	// MaxBytes is the longest policy.
	MaxBytes = 1 << 20
	// MaxRules is the most rules that one has.
	MaxRules = 10_000

	maxNesting = 8
	maxItems   = 100_000
)

// anyName is the name of all repositories that no other rule is about.
const anyName = "*"

// Policy is what a file says. It may be used by many goroutines at once.
type Policy struct {
	path  string
	rules map[string]*signature.Trust // by name; nil where unsigned is fine
}

// ruleTOML is one rule as it is written.
type ruleTOML struct {
	Name         string   `toml:"name"`
	Keys         []string `toml:"keys"`
	Certificates []string `toml:"certificates"`
	Identity     string   `toml:"identity"`
	Unsigned     bool     `toml:"unsigned"`
}

// Read reads a policy and all keys that it names.
func Read(path string) (*Policy, error) {
	text, err := localfile.Read(path, MaxBytes)
	if err == nil {
		var p *Policy
		if p, err = parse(path, text); err == nil {
			return p, nil
		}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == path {
		err = pe.Err
	}
	return nil, fmt.Errorf("policy %s: %w", path, errtext.WithKind(err, ErrPolicy))
}

func parse(path string, text []byte) (*Policy, error) {
	if err := tomlguard.Check(text, maxNesting, maxItems); err != nil {
		return nil, err
	}
	var file struct {
		Repository []ruleTOML `toml:"repository"`
	}
	meta, err := toml.Decode(string(text), &file)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("has the unknown key %s", errtext.Quoted(unknown[0].String()))
	}
	for _, key := range meta.Keys() { // the parser takes them in any case
		if last := key[len(key)-1]; last != strings.ToLower(last) {
			return nil, fmt.Errorf("has the unknown key %s", errtext.Quoted(key.String()))
		}
	}
	if len(file.Repository) == 0 {
		return nil, fmt.Errorf("holds no rule; one for %q with unsigned = true accepts everything", anyName)
	}
	if len(file.Repository) > MaxRules {
		return nil, fmt.Errorf("has %d rules, and may have at most %d", len(file.Repository), MaxRules)
	}
	p := &Policy{path: path, rules: map[string]*signature.Trust{}}
	for _, r := range file.Repository {
		name, err := normalName(r.Name)
		if err != nil {
			return nil, err
		}
		if _, twice := p.rules[name]; twice {
			return nil, fmt.Errorf("has two rules for %s", errtext.Quoted(name))
		}
		if p.rules[name], err = r.trust(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("repository %s: %w", errtext.Quoted(r.Name), err)
		}
	}
	return p, nil
}

// trust reads the keys of a rule. It is nil where nothing is asked.
func (r ruleTOML) trust(dir string) (*signature.Trust, error) {
	if r.Unsigned {
		if len(r.Keys)+len(r.Certificates) > 0 || r.Identity != "" {
			return nil, errors.New("accepts what is unsigned, and names keys")
		}
		return nil, nil //nolint:nilnil // documented
	}
	t := &signature.Trust{Identity: r.Identity}
	for _, name := range r.Keys {
		keys, err := readPEM(dir, name, signature.ParsePublicKeys)
		if err != nil {
			return nil, err
		}
		t.Keys = append(t.Keys, keys...)
	}
	for _, name := range r.Certificates {
		list, err := readPEM(dir, name, signature.ParseCertificates)
		if err != nil {
			return nil, err
		}
		t.Certificates = append(t.Certificates, list...)
	}
	switch {
	case t.IsZero():
		return nil, errors.New("names neither keys nor certificates; unsigned = true accepts everything")
	case t.Identity != "" && len(t.Certificates) == 0:
		return nil, errors.New("names an identity, and no certificates that it could be in")
	}
	return t, nil
}

// readPEM reads a file that a policy in dir names.
func readPEM[T any](dir, name string, parse func([]byte) ([]T, error)) ([]T, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	text, err := localfile.Read(name, signature.MaxKeyBytes)
	if err != nil {
		return nil, err
	}
	list, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return list, nil
}

// normalName returns a rule's name as repositories are looked up.
func normalName(name string) (string, error) {
	if name == anyName {
		return name, nil
	}
	host, path, _ := strings.Cut(name, "/")
	if path == "" && !strings.HasSuffix(name, "/") {
		path = "x" // a registry alone
	}
	ref, err := registry.ParseReference(normalHost(host) + "/" + path)
	if err != nil || ref.Target() != "" {
		return "", fmt.Errorf("the name %s is neither a registry nor a repository, nor *", errtext.Quoted(name))
	}
	if !strings.Contains(name, "/") {
		return ref.Registry, nil
	}
	return ref.Registry + "/" + path, nil
}

// normalHost returns the one name that a registry has.
func normalHost(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":443", ":80"} {
		host = strings.TrimSuffix(host, port)
	}
	if name, port, ok := strings.Cut(host, ":"); ok && !strings.HasPrefix(host, "[") {
		return strings.TrimSuffix(name, ".") + ":" + port
	}
	return strings.TrimSuffix(host, ".")
}

// Of returns whose signatures are wanted of a repository, nil where none is, and which
// file says so.
func (p *Policy) Of(host, repository string) (trust *signature.Trust, by string, err error) {
	ref, err := registry.ParseReference(normalHost(host) + "/" + repository)
	if err != nil { // what it can't be asked about, no rule allows
		return nil, "", fmt.Errorf("policy %s: %w", p.path, errtext.WithKind(err, ErrPolicy))
	}
	for name := ref.Registry + "/" + ref.Repository; ; {
		if t, ok := p.rules[name]; ok {
			return t, p.path, nil
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return p.rules[anyName], p.path, nil
		}
		name = name[:cut]
	}
}

// Lazily returns what reads the policy of this user when it is first asked: the file
// that CARTON_OCI_POLICY names, else carton-oci/policy.toml in the user's configuration
// folder, if it is there; where no variable says which folder that is, the system is
// asked for the user's home. An empty CARTON_OCI_POLICY is no name of a file and an error:
// an unset variable of a script must not be the end of a policy.
func Lazily() func(host, repository string) (*signature.Trust, string, error) {
	load := sync.OnceValues(find)
	return func(host, repository string) (*signature.Trust, string, error) {
		p, err := load()
		if err != nil || p == nil {
			return nil, "", err
		}
		return p.Of(host, repository)
	}
}

// find reads the user's policy, nil for none.
func find() (*Policy, error) {
	if path, ok := os.LookupEnv("CARTON_OCI_POLICY"); ok {
		if path == "" {
			return nil, fmt.Errorf("CARTON_OCI_POLICY is empty, want the name of a file: %w", ErrPolicy)
		}
		return Read(path)
	}
	dir, err := configDir()
	if err != nil {
		return nil, fmt.Errorf("no policy can be looked for: %w", errtext.WithKind(err, ErrPolicy))
	}
	if dir == "" {
		return nil, nil //nolint:nilnil // who has no configuration folder has no policy in it
	}
	path := filepath.Join(dir, "carton-oci", "policy.toml")
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // HOME=/dev/null
		return nil, nil //nolint:nilnil // documented
	}
	return Read(path)
}

// configDir returns the user's configuration folder, "" for a user who has none. Where
// the environment does not say it, as a service's may not, the system does: a policy
// must not end because a variable is not set.
func configDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err == nil || os.Getenv("XDG_CONFIG_HOME") != "" { // which is there, and no folder's path
		return dir, err
	}
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return "", nil //nolint:nilerr // nobody has made a home for this user
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(u.HomeDir, "AppData", "Roaming"), nil
	case "darwin", "ios":
		return filepath.Join(u.HomeDir, "Library", "Application Support"), nil
	}
	return filepath.Join(u.HomeDir, ".config"), nil
}
