//go:build cosign

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// cosign is sigstore's program, which takes minutes to build: make e2e-cosign.
var cosign = program.Set{
	Name: "cosign", Module: "github.com/sigstore/cosign/v3", Version: "v3.1.3",
	Packages: []string{"github.com/sigstore/cosign/v3/cmd/cosign"},
}

// cosigned is a user with cosign, two key pairs and a pushed model.
type cosigned struct {
	*user
	cosign, ref string
}

func newCosigned(t *testing.T, o testregistry.Options) *cosigned {
	t.Helper()
	path := filepath.Join(cosign.Build(t), "cosign")
	u := newUser(t).with("COSIGN_PASSWORD=pw")
	s := testregistry.Start(t, o)
	mixedModel().write(t, u.path("m.carton"))
	c := &cosigned{u, path, s.Host + "/org/m:1"}
	u.must(t, "push", "m.carton", c.ref, "--image")
	u.must(t, "keygen", "-o", "ours")
	if r := u.exec(t, path, "generate-key-pair", "--output-key-prefix", "theirs"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	return c
}

// verify runs cosign verify, and returns its exit code.
func (c *cosigned) verify(t *testing.T, ref, key string, flags ...string) result {
	t.Helper()
	return c.exec(t, c.cosign, append([]string{"verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry", ref}, flags...)...)
}

// registries are one that has no list of referrers and lets nobody delete, which is how
// distribution is installed, and one in whose place a proxy answers as if it lost lists.
var cosignRegistries = map[string]testregistry.Options{
	"distribution": {},
	"no referrers": {Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/referrers/") {
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}},
}

// What we sign cosign verifies, with our keys and its own, and nothing else.
func TestCosignVerifiesWhatWeSign(t *testing.T) {
	for name, o := range cosignRegistries {
		t.Run(name, func(t *testing.T) {
			c := newCosigned(t, o)
			for _, key := range []string{"ours", "theirs"} {
				if r := c.verify(t, c.ref, key+".pub"); r.code == 0 {
					t.Errorf("%s: verified before it is signed", key)
				}
				c.must(t, "sign", c.ref, "--key", key+".key")
				for _, ref := range []string{c.ref, c.ref + "-image"} {
					if r := c.verify(t, ref, key+".pub"); r.code != 0 {
						t.Errorf("%s: %s: exit code %d\n%s", key, ref, r.code, r.stderr)
					}
				}
			}
			c.must(t, "keygen", "-o", "strange")
			if r := c.verify(t, c.ref, "strange.pub"); r.code == 0 {
				t.Error("verified by a key that signed nothing")
			}
			if r := c.run(t, "verify", c.ref, "--key", "strange.pub"); r.code != 5 {
				t.Errorf("ours: exit code %d, want 5\n%s", r.code, r.stderr)
			}
		})
	}
}

// What cosign signs we verify, beside our own signatures or alone.
func TestWeVerifyWhatCosignSigns(t *testing.T) {
	for name, o := range cosignRegistries {
		t.Run(name, func(t *testing.T) {
			c := newCosigned(t, o)
			for i, key := range []string{"theirs", "ours"} {
				args := []string{
					"sign", "--key", key + ".key", "--tlog-upload=false", "--use-signing-config=false", "--allow-http-registry", "-y", c.ref,
				}
				if r := c.exec(t, c.cosign, args...); r.code != 0 {
					t.Fatalf("cosign %v: %s", args, r.stderr)
				}
				c.must(t, "verify", c.ref, "--key", key+".pub")
				c.must(t, "pull", c.ref, "-o", key+".carton", "--key", key+".pub")
				if i == 0 { // ours goes beside theirs, and loses nothing
					c.must(t, "sign", c.ref, "--key", "ours.key")
				}
			}
			if r := c.verify(t, c.ref, "theirs.pub"); r.code != 0 {
				t.Errorf("theirs is gone: %s", r.stderr)
			}
			if err := os.Rename(c.path("theirs.pub"), c.path("x.pub")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// rootOfBundle returns the digest that a bundle's statement is about.
func rootOfBundle(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct{ DSSEEnvelope struct{ Payload string } }
	if err := json.Unmarshal(raw, &bundle); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(bundle.DSSEEnvelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct{ Digest map[string]string }
	}
	if err := json.Unmarshal(payload, &statement); err != nil || len(statement.Subject) != 1 {
		t.Fatalf("%v in %s", err, payload)
	}
	return statement.Subject[0].Digest["sha256"]
}

// The model's signature is one that cosign verifies, of the root digest.
func TestCosignVerifiesTheModelsSignature(t *testing.T) {
	c := newCosigned(t, testregistry.Options{})
	c.must(t, "sign", "m.carton", "--key", "ours.key")
	root := rootOfBundle(t, c.path("m.carton.sig"))
	for digest, want := range map[string]int{root: 0, strings.Repeat("0", 64): 1} {
		r := c.exec(t, c.cosign, "verify-blob-attestation", "--bundle", "m.carton.sig", "--key", "ours.pub", "--insecure-ignore-tlog",
			"--type", "https://model_signing/signature/v1.0", "--digest", digest, "--digestAlg", "sha256")
		if r.code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", digest, r.code, want, r.stderr)
		}
	}
}
