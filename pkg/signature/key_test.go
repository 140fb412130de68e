package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

func word(s string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(s), nil }
}

// Keys of openssl and cosign, in all their forms, are one key.
func TestPrivateKeysOfOtherPrograms(t *testing.T) {
	for _, name := range []string{
		"p256.sec1.pem", "p256.sec1-with-parameters.pem", "p256.pkcs8.pem", "p256.cosign.key", "p384.pkcs8.pem", "p521.pkcs8.pem",
	} {
		key, err := ParsePrivateKey(fixture(t, "keys/"+name), word("pw"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		curve, _, _ := strings.Cut(name, ".")
		public, err := ParsePublicKeys(fixture(t, "keys/"+curve+".pub"))
		if err != nil || publicOf(t, key).ID() != public[0].ID() {
			t.Errorf("%s: another key, %v", name, err)
		}
		if text, err := publicOf(t, key).PEM(); err != nil || !bytes.Equal(text, fixture(t, "keys/"+curve+".pub")) {
			t.Errorf("%s: got the public key\n%s", name, text)
		}
	}
	_, err := ParsePrivateKey(fixture(t, "keys/p256.pkcs8-encrypted.pem"), word("pw"))
	if !errors.Is(err, ErrKey) || len(hint.Of(err)) != 1 || !strings.Contains(hint.Of(err)[0].String(), "openssl pkcs8") {
		t.Errorf("PBES2: got %v, %v", err, hint.Of(err))
	}
	if _, err := ParsePublicKeys(fixture(t, "keys/leaf.pem")); err != nil {
		t.Errorf("the key of a certificate: %v", err)
	}
}

// The encrypted form comes back, and nothing of it or of the password is in an error.
func TestEncryptedKeyComesBack(t *testing.T) {
	key := newKey(t)
	text, err := EncryptPrivateKey(key, []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(text); block == nil || block.Type != "ENCRYPTED SIGSTORE PRIVATE KEY" {
		t.Fatalf("got %s", text)
	}
	got, err := ParsePrivateKey(text, word("correct horse"))
	if err != nil || !got.Equal(key) {
		t.Errorf("got %v", err)
	}
	for _, password := range []func() ([]byte, error){word("battery staple"), word(""), nil} {
		if _, err := ParsePrivateKey(text, password); !errors.Is(err, ErrPassword) || strings.Contains(err.Error(), "staple") {
			t.Errorf("got %v, want ErrPassword", err)
		}
	}
	asked := errors.New("no terminal")
	if _, err := ParsePrivateKey(text, func() ([]byte, error) { return nil, asked }); !errors.Is(err, asked) {
		t.Errorf("got %v", err)
	}
}

// Files that ask for much, or are something else, are refused, and say so without a
// byte of what they hold.
func TestHostileKeyFiles(t *testing.T) {
	const form = `{"kdf":{"name":"scrypt","params":{"N":%s,"r":%s,"p":%s},"salt":"c2VjcmV0c2VjcmV0"},` +
		`"cipher":{"name":"nacl/secretbox","nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},"ciphertext":"c2VjcmV0"}`
	encrypted := func(text string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: pemSigstore, Bytes: []byte(text)})
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edDER, err := x509.MarshalPKCS8PrivateKey(ed)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := x509.MarshalECPrivateKey(fixedKey(t, elliptic.P224()))
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	for name, text := range map[string][]byte{
		"an absurd N":                encrypted(fmt.Sprintf(form, "1073741824", "8", "1")),
		"an N that is too small":     encrypted(fmt.Sprintf(form, "2", "8", "1")),
		"an N that is no power":      encrypted(fmt.Sprintf(form, "65535", "8", "1")),
		"an N over 63 bits":          encrypted(fmt.Sprintf(form, "99999999999999999999", "8", "1")),
		"an absurd r":                encrypted(fmt.Sprintf(form, "65536", "1048576", "1")),
		"an absurd p":                encrypted(fmt.Sprintf(form, "65536", "8", "1048576")),
		"a key twice":                encrypted(strings.Replace(fmt.Sprintf(form, "65536", "8", "1"), `"r":8`, `"r":8,"r":8`, 1)),
		"an unknown field":           encrypted(strings.Replace(fmt.Sprintf(form, "65536", "8", "1"), `{"kdf"`, `{"x":1,"kdf"`, 1)),
		"another cipher":             encrypted(strings.Replace(fmt.Sprintf(form, "65536", "8", "1"), "nacl/secretbox", "rot13", 1)),
		"a short nonce":              encrypted(strings.Replace(fmt.Sprintf(form, "65536", "8", "1"), strings.Repeat("A", 32), "AAAA", 1)),
		"no JSON":                    encrypted("secretsecret"),
		"nothing":                    nil,
		"no PEM":                     []byte("secretsecretsecret"),
		"a broken key":               block(pemPKCS8, []byte("secretsecretsecret")),
		"a broken SEC 1 key":         block(pemEC, []byte("secretsecretsecret")),
		"a key of Ed25519":           block(pemPKCS8, edDER),
		"a key of P-224":             block(pemEC, p224),
		"a public key":               block(pemPublic, []byte("secretsecret")),
		"a certificate":              block(pemCertificate, []byte("secretsecret")),
		"another block":              block("SECRETSECRET", []byte("secretsecret")),
		"a key encrypted as of old":  []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n"),
		"a key encrypted by openssl": block(pemEncrypted, []byte("secretsecret")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePrivateKey(text, word("pw"))
			if !errors.Is(err, ErrKey) || strings.Contains(strings.ToLower(strings.ReplaceAll(err.Error(), "secretbox", "")), "secret") {
				t.Errorf("got %v, want ErrKey without the secret", err)
			}
		})
	}
}

func TestHostilePublicKeys(t *testing.T) {
	private, err := EncryptPrivateKey(newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	public := publicOf(t, newKey(t))
	text, err := public.PEM()
	if err != nil {
		t.Fatal(err)
	}
	edKey, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(edKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "no PEM": []byte("ssh-ed25519 AAAA"), "a private key": private, "one good, one private": append(text, private...),
		"a key of Ed25519":        pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}),
		"a broken one":            pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: []byte("x")}),
		"a block of another kind": pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: []byte("x")}),
	} {
		if _, err := ParsePublicKeys(b); !errors.Is(err, ErrKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if keys, err := ParsePublicKeys(append(text, text...)); err != nil || len(keys) != 2 {
		t.Errorf("two keys: got %d, %v", len(keys), err)
	}
}

func FuzzKeyFile(f *testing.F) {
	text, err := publicOf(f, fixedKey(f, elliptic.P256())).PEM()
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(fixedKey(f, elliptic.P256()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(pem.EncodeToMemory(&pem.Block{Type: pemPKCS8, Bytes: der}))
	f.Add([]byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nee3f\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// What costs a second each is asked for no password.
		key, err := ParsePrivateKey(text, nil)
		if err == nil {
			if _, err := NewSigner(key, nil); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, ErrKey) && !errors.Is(err, ErrPassword) {
			t.Errorf("got %v", err)
		}
		if keys, err := ParsePublicKeys(text); err == nil {
			for _, k := range keys {
				if _, err := k.PEM(); err != nil {
					t.Error(err)
				}
			}
		} else if !errors.Is(err, ErrKey) {
			t.Errorf("got %v", err)
		}
		_, _ = ParseCertificates(text)
	})
}
