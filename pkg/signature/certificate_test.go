package signature

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"testing"
	"time"
)

// Whose certificate leads where it should, and says what it is for, has signed.
func TestCertificates(t *testing.T) {
	rootKey, interKey, leafKey := newKey(t), newKey(t), newKey(t)
	root := issue(t, authority("root"), nil, rootKey, nil)
	inter := issue(t, authority("between"), root, interKey, rootKey)
	stranger := issue(t, authority("root"), nil, newKey(t), nil) // of the same name
	m := sampleManifest(t)

	leafOf := func(change func(*x509.Certificate)) *x509.Certificate {
		c := codeSigner("anna")
		change(c)
		return issue(t, c, inter, leafKey, interKey)
	}
	same := func(*x509.Certificate) {}
	signed := func(key *ecdsa.PrivateKey, chain ...*x509.Certificate) []byte {
		s := &Signer{key: key, public: publicOf(t, key), chain: chain}
		b, err := s.SignModel(m, "m")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := leafOf(same)
	later := func() time.Time { return time.Now().Add(48 * time.Hour) }
	for _, c := range []struct {
		name  string
		trust Trust
		raw   []byte
		want  error
	}{
		{"chain", Trust{Certificates: list(root)}, signed(leafKey, good, inter), nil},
		{"leaf alone, the rest given", Trust{Certificates: list(inter, root)}, signed(leafKey, good), nil},
		{"an intermediate is trusted", Trust{Certificates: list(inter)}, signed(leafKey, good), nil},
		{"the identity asked for", Trust{Certificates: list(root), Identity: "anna@example.com"}, signed(leafKey, good, inter), nil},
		{"another identity", Trust{Certificates: list(root), Identity: "eve@example.com"}, signed(leafKey, good, inter), ErrSigner},
		{"a missing intermediate", Trust{Certificates: list(root)}, signed(leafKey, good), ErrSigner},
		{"another root of the same name", Trust{Certificates: list(stranger)}, signed(leafKey, good, inter), ErrSigner},
		{"a chain that brings its root", Trust{Certificates: list(stranger)}, signed(leafKey, good, inter, root), ErrSigner},
		{"another key than the certificate's", Trust{Certificates: list(root)}, signed(newKey(t), good, inter), ErrSigner},
		{"expired", Trust{Certificates: list(root), now: later}, signed(leafKey, good, inter), ErrExpired},
		{"not yet valid", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Minute)
		}), inter), ErrExpired},
		{"of a web server", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), inter), ErrSigner},
		{"for signatures, nothing said of code", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.ExtKeyUsage = nil
		}), inter), nil},
		{"for code, nothing said of signatures", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.KeyUsage = 0
		}), inter), nil},
		{"for nothing that is said", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.KeyUsage, c.ExtKeyUsage = 0, nil
		}), inter), ErrSigner},
		{"for encipherment", Trust{Certificates: list(root)}, signed(leafKey, leafOf(func(c *x509.Certificate) {
			c.KeyUsage = x509.KeyUsageKeyEncipherment
		}), inter), ErrSigner},
		{"a leaf that signs as an authority", Trust{Certificates: list(root)}, signed(leafKey,
			issue(t, codeSigner("eve"), good, leafKey, leafKey), good, inter), ErrSigner},
		{"a key is asked for", Trust{Keys: []*PublicKey{publicOf(t, rootKey)}}, signed(leafKey, good, inter), ErrSigner},
		{"the certificate's key is asked for", Trust{Keys: []*PublicKey{publicOf(t, leafKey)}}, signed(leafKey, good, inter), nil},
		{"certificates are asked for, a key signed", Trust{Certificates: list(root)}, signed(leafKey), ErrSigner},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := c.trust.Judge("x", c.raw, Subject{Model: m})
			if !errors.Is(j.Err, c.want) || (j.Err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", j.Err, c.want)
			}
		})
	}
}

func list(c ...*x509.Certificate) []*x509.Certificate { return c }

// Who signs with a certificate is told when it is not his, or not valid.
func TestSignerOfACertificate(t *testing.T) {
	key := newKey(t)
	root := issue(t, authority("root"), nil, key, nil)
	old := codeSigner("old")
	old.NotBefore, old.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	if _, err := NewSigner(newKey(t), list(issue(t, codeSigner("x"), root, newKey(t), key))); !errors.Is(err, ErrKey) {
		t.Errorf("of another key: got %v", err)
	}
	if _, err := NewSigner(key, list(issue(t, old, root, key, key))); !errors.Is(err, ErrExpired) {
		t.Errorf("expired: got %v", err)
	}
	s, err := NewSigner(key, list(issue(t, codeSigner("x"), root, key, key), root))
	if err != nil || len(s.chain) != 1 {
		t.Errorf("got a chain of %d, %v, want the leaf alone", len(s.chain), err)
	}
}
