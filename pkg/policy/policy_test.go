package policy

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// write puts a policy and two keys into a folder, and returns the policy's name.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a.pub", "b.pub"} {
		key, err := signature.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		public, err := signature.NewPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		pem, err := public.PEM()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), pem, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "policy.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const sample = `
[[repository]]
name = "ghcr.io/org"
keys = ["a.pub"]
[[repository]]
name = "ghcr.io/org/open"
unsigned = true
[[repository]]
name = "docker.io"
keys = ["a.pub", "b.pub"]
[[repository]]
name = "localhost:5000"
keys = ["b.pub"]
`

// The longest name decides, by whole parts, and a registry has one name.
func TestWhichRuleDecides(t *testing.T) {
	p, err := Read(write(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 0
	for name, want := range map[string]int{
		"ghcr.io/org":            1,
		"ghcr.io/org/m":          1,
		"ghcr.io/org/m/deep":     1,
		"ghcr.io/organ":          nobody,
		"ghcr.io/organ/m":        nobody,
		"ghcr.io/org/open":       nobody,
		"ghcr.io/org/open/m":     nobody,
		"ghcr.io/org/opener":     1,
		"GHCR.io/org/m":          1,
		"ghcr.io:443/org/m":      1,
		"ghcr.io:80/org/m":       1,
		"ghcr.io./org/m":         1,
		"ghcr.io.:443/org/m":     1,
		"ghcr.io:8443/org/m":     nobody,
		"docker.io/library/m":    2,
		"index.docker.io/org/m":  2,
		"localhost:5000/m":       1,
		"localhost/m":            nobody,
		"registry.example/org/m": nobody,
	} {
		host, repository, _ := strings.Cut(name, "/")
		trust, by, err := p.Of(host, repository)
		if err != nil || by != p.path || trust.IsZero() != (want == 0) || trust != nil && len(trust.Keys) != want {
			t.Errorf("%s: got %+v by %s, %v, want %d keys", name, trust, by, err, want)
		}
	}
}

func TestRuleForAllOthers(t *testing.T) {
	p, err := Read(write(t, sample+"[[repository]]\nname = \"*\"\nkeys = [\"b.pub\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"registry.example/m": true, "ghcr.io/organ": true, "ghcr.io/org/open": false} {
		host, repository, _ := strings.Cut(name, "/")
		if trust, _, err := p.Of(host, repository); err != nil || trust.IsZero() == want {
			t.Errorf("%s: got %+v, %v", name, trust, err)
		}
	}
}

// What no rule can be about is an error, and not free of all rules.
func TestOfWhatIsNoRepository(t *testing.T) {
	p, err := Read(write(t, sample))
	if err != nil {
		t.Fatal(err)
	}
	if trust, _, err := p.Of("ghcr.io", "org//m"); trust != nil || !errors.Is(err, ErrPolicy) {
		t.Errorf("got %+v, %v, want ErrPolicy", trust, err)
	}
}

// What can't be read, or may be meant otherwise, is no policy.
func TestBrokenPolicies(t *testing.T) {
	for name, text := range map[string]string{
		"no TOML":                   "x",
		"an unknown key":            "[[repository]]\nname = \"h.io\"\nkey = \"a.pub\"\n",
		"an unknown table":          "[defaults]\n",
		"a key in another case":     "[[repository]]\nname = \"h.io\"\nKeys = [\"a.pub\"]\n",
		"a text for a list":         "[[repository]]\nname = \"h.io\"\nkeys = \"a.pub\"\n",
		"no name":                   "[[repository]]\nkeys = [\"a.pub\"]\n",
		"neither keys nor unsigned": "[[repository]]\nname = \"h.io\"\n",
		"keys and unsigned":         "[[repository]]\nname = \"h.io\"\nkeys = [\"a.pub\"]\nunsigned = true\n",
		"an identity alone":         "[[repository]]\nname = \"h.io\"\nidentity = \"x\"\n",
		"an identity of a key":      "[[repository]]\nname = \"h.io\"\nidentity = \"x\"\nkeys = [\"a.pub\"]\n",
		"a missing key":             "[[repository]]\nname = \"h.io\"\nkeys = [\"c.pub\"]\n",
		"no key in a file":          "[[repository]]\nname = \"h.io\"\nkeys = [\"policy.toml\"]\n",
		"a key for a certificate":   "[[repository]]\nname = \"h.io\"\ncertificates = [\"a.pub\"]\n",
		"a name twice":              "[[repository]]\nname = \"h.io\"\nunsigned = true\n[[repository]]\nname = \"H.io:443\"\nunsigned = true\n",
		"empty":                     "",
		"comments alone":            "# [[repository]]\n# name = \"h.io\"\n",
		"a list of no rules":        "repository = []\n",
		"a tag":                     "[[repository]]\nname = \"h.io/m:1\"\nunsigned = true\n",
		"a glob":                    "[[repository]]\nname = \"h.io/*\"\nunsigned = true\n",
		"a slash at the end":        "[[repository]]\nname = \"h.io/org/\"\nunsigned = true\n",
		"a URL":                     "[[repository]]\nname = \"https://h.io\"\nunsigned = true\n",
		"deep":                      "a = " + strings.Repeat("[", 10000),
		"too long":                  strings.Repeat("#", MaxBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, text)
			if _, err := Read(path); !errors.Is(err, ErrPolicy) || !strings.HasPrefix(err.Error(), "policy "+path+": ") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v", err)
	}
}

// The user's file is found, and what was named and can't be read refuses.
func TestWhereThePolicyIs(t *testing.T) {
	path := write(t, sample)
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	t.Setenv("AppData", config)
	ask := func() (*signature.Trust, error) {
		trust, _, err := Lazily()("ghcr.io", "org/m")
		return trust, err
	}
	os.Unsetenv("CARTON_OCI_POLICY")
	if trust, err := ask(); trust != nil || err != nil {
		t.Errorf("no policy: got %v, %v", trust, err)
	}
	t.Setenv("CARTON_OCI_POLICY", path)
	if trust, err := ask(); trust.IsZero() || err != nil {
		t.Errorf("the variable: got %v, %v", trust, err)
	}
	for _, bad := range []string{"", filepath.Join(config, "none")} {
		t.Setenv("CARTON_OCI_POLICY", bad)
		if _, err := ask(); !errors.Is(err, ErrPolicy) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	os.Unsetenv("CARTON_OCI_POLICY")
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "carton-oci", "policy.toml")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	testenv.Symlink(t, "nowhere", own)
	if _, err := ask(); !errors.Is(err, ErrPolicy) {
		t.Errorf("a symlink to nothing: got %v", err)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("[[repository]]\nname = \"ghcr.io\"\nkeys = ["+`"`+filepath.ToSlash(filepath.Join(filepath.Dir(path), "a.pub"))+`"`+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if trust, err := ask(); trust.IsZero() || err != nil {
		t.Errorf("the user's: got %v, %v", trust, err)
	}
}

// A configuration folder that can't be one is an error: a policy may be in it.
func TestAConfigurationFolderThatIsNone(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("XDG_CONFIG_HOME is not asked here")
	}
	t.Setenv("XDG_CONFIG_HOME", "relative")
	t.Setenv("CARTON_OCI_POLICY", "")
	os.Unsetenv("CARTON_OCI_POLICY")
	if _, _, err := Lazily()("ghcr.io", "org/m"); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v, want ErrPolicy", err)
	}
}

// A service has no HOME, and its user has a home with a policy in it all the same. A HOME
// that is no folder holds none.
func TestWhereThePolicyIsWithoutHome(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the folder has another name here")
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "CARTON_OCI_POLICY"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	u, err := user.Current()
	if err != nil {
		t.Skip("nobody knows this user")
	}
	if dir, err := configDir(); err != nil || dir != filepath.Join(u.HomeDir, ".config") {
		t.Errorf("got %q, %v, want .config in %s", dir, err, u.HomeDir)
	}
	t.Setenv("HOME", os.DevNull)
	if p, err := find(); p != nil || err != nil {
		t.Errorf("HOME=%s: got %v, %v, want no policy", os.DevNull, p, err)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parse("policy.toml", text)
		if err == nil {
			_, _, _ = p.Of("ghcr.io", "org/m")
		}
	})
}
