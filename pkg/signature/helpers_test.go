package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// fixedKey is the same key in every run.
func fixedKey(t testing.TB, c elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	raw := make([]byte, (c.Params().BitSize+7)/8)
	for i := range raw {
		raw[i] = byte(i) // below every curve's order
	}
	key, err := ecdsa.ParseRawPrivateKey(c, raw)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicOf(t testing.TB, key *ecdsa.PrivateKey) *PublicKey {
	t.Helper()
	p, err := NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func signerOf(t testing.TB, key *ecdsa.PrivateKey, chain ...*x509.Certificate) *Signer {
	t.Helper()
	s, err := NewSigner(key, chain)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// manifestOf lists members whose hashes are those of their names.
func manifestOf(t testing.TB, names ...string) *carton.Manifest {
	t.Helper()
	var entries []carton.Entry
	for _, name := range names {
		entries = append(entries, carton.Entry{Path: name, Hash: hashOfText(name)})
	}
	m, err := carton.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hashOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func sampleManifest(t testing.TB) *carton.Manifest {
	t.Helper()
	return manifestOf(t, "carton.toml", "model/a/z", "model/a-b/x", "model/weights.safetensors", ".github/workflows/x.yml", "misc/ü.txt")
}

// issue makes a certificate. Where parent is nil it is a root.
func issue(t testing.TB, template, parent *x509.Certificate, key *ecdsa.PrivateKey, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func authority(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func codeSigner(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, EmailAddresses: []string{name + "@example.com"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
}

// fixture reads a file that another program wrote.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(testenv.Foreign(t, filepath.Join("signing", name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fixtureKeys(t testing.TB, name string) *Trust {
	t.Helper()
	keys, err := ParsePublicKeys(fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return &Trust{Keys: keys}
}

func fixtureCertificates(t testing.TB, names ...string) *Trust {
	t.Helper()
	trust := &Trust{}
	for _, name := range names {
		list, err := ParseCertificates(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		trust.Certificates = append(trust.Certificates, list...)
	}
	return trust
}
