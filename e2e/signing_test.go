package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// A model is signed once, as a file, and verified wherever it went from there: by the
// same signature, with the same key; and what is not that model is refused.
func TestSignedOnceVerifiedInEveryPlace(t *testing.T) {
	u := newUser(t).with("COSIGN_PASSWORD=pw")
	one, two := testregistry.Start(t, testregistry.Options{}), testregistry.Start(t, testregistry.Options{})
	mixedModel().write(t, u.path("m.carton"))
	u.must(t, "keygen", "-o", "org")
	u.must(t, "keygen", "-o", "other")
	u.must(t, "sign", "m.carton", "--key", "org.key")
	ref, copied := one.Host+"/org/m:1", two.Host+"/mirror/m:2"
	u.must(t, "push", "m.carton", ref, "--image", "--layers", "raw")
	u.must(t, "push", ref, copied)
	u.must(t, "push", ref, "oci:lay:1")
	u.must(t, "pull", copied, "--unpack", "folder")
	u.must(t, "pull", ref, "--thin", "-o", "thin.carton")
	for _, place := range []string{"m.carton", "folder", "thin.carton", "oci:lay:1", ref, ref + "-image", copied} {
		u.must(t, "verify", place, "--key", "org.pub", "--signature", "m.carton.sig")
		if r := u.run(t, "verify", place, "--key", "other.pub", "--signature", "m.carton.sig"); r.code != 5 {
			t.Errorf("%s by another key: exit code %d, want 5\n%s", place, r.code, r.stderr)
		}
	}

	// A changed byte, a file less and a file more are what they are without a signature.
	damage := map[string]func() error{
		"a changed byte": func() error { return os.WriteFile(u.path("folder/model/empty.txt"), []byte("x"), 0o644) },
		"a file more":    func() error { return os.WriteFile(u.path("folder/model/more"), nil, 0o644) },
		"a file less":    func() error { return os.Remove(u.path("folder/model/empty.txt")) },
	}
	for name, do := range damage {
		if err := os.RemoveAll(u.path("folder")); err != nil {
			t.Fatal(err)
		}
		u.must(t, "pull", copied, "--unpack", "folder")
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if r := u.run(t, "verify", "folder", "--key", "org.pub", "--signature", "m.carton.sig"); r.code != 3 {
			t.Errorf("%s: exit code %d, want 3\n%s", name, r.code, r.stderr)
		}
	}
	// An older signed version passes, because tags are not signed; its model hash doesn't.
	hash := strings.TrimSpace(u.must(t, "inspect", "m.carton", "-q").stdout)
	u.must(t, "sign", ref, "--key", "org.key")
	u.must(t, "pull", ref, "-o", "pinned.carton", "--key", "org.pub", "--model-hash", hash)
	if r := u.run(t, "pull", ref, "-o", "no.carton", "--key", "org.pub", "--model-hash", strings.Repeat("0", 64)); r.code != 3 {
		t.Errorf("another model hash: exit code %d, want 3", r.code)
	}
}

// signedAndMounted verifies the signature of a file on the folder that containerd mounts.
func signedAndMounted(t *testing.T, u *user, file, mount string) {
	t.Helper()
	u = u.with("COSIGN_PASSWORD=pw")
	u.must(t, "keygen", "-o", "org")
	u.must(t, "keygen", "-o", "other")
	u.must(t, "sign", file, "--key", "org.key", "-o", "m.sig")
	u.must(t, "verify", mount, "--key", "org.pub", "--signature", "m.sig")
	if r := u.run(t, "verify", mount, "--key", "other.pub", "--signature", "m.sig"); r.code != 5 {
		t.Errorf("the mount, by another key: exit code %d, want 5\n%s", r.code, r.stderr)
	}
}

// A policy refuses whatever flags say, and no secret of a key gets out.
func TestPolicyOfTheUser(t *testing.T) {
	u := newUser(t).with("COSIGN_PASSWORD=hunter2hunter2")
	s := testregistry.Start(t, testregistry.Options{})
	ref := s.Host + "/org/m:1"
	mixedModel().write(t, u.path("m.carton"))
	u.must(t, "push", "m.carton", ref)
	u.must(t, "keygen", "-o", "org")
	if err := os.WriteFile(u.path("policy.toml"), []byte("[[repository]]\nname = \""+s.Host+"/org\"\nkeys = [\"org.pub\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bound := u.with("CARTON_OCI_POLICY=" + u.path("policy.toml"))
	uses := [][]string{
		{"pull", ref, "-o", "x.carton"}, {"verify", ref}, {"push", ref, "oci:lay:1"}, {"cat", ref, "carton.toml"}, {"image", ref},
	}
	for _, args := range uses {
		if r := bound.run(t, args...); r.code != 5 || !strings.Contains(r.stderr, "policy.toml") {
			t.Errorf("%v: exit code %d, want 5\n%s", args, r.code, r.stderr)
		}
	}
	for _, args := range [][]string{{"inspect", ref}, {"ls", ref}, {"resolve", ref}} {
		bound.must(t, args...) // which only look
	}
	r := bound.must(t, "sign", ref, "--key", "org.key", "--debug")
	if strings.Contains(r.stderr, "hunter2") {
		t.Error("the password is in the log")
	}
	for _, args := range uses {
		bound.must(t, args...)
	}
	if err := os.WriteFile(u.path("policy.toml"), []byte("[[repositories]]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := bound.run(t, "pull", ref, "-o", "y.carton"); r.code != 2 {
		t.Errorf("a broken policy: exit code %d, want 2\n%s", r.code, r.stderr)
	}
}
