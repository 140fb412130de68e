package signature

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// The costs of scrypt. What a file asks for is memory of 128·N·r bytes, before its
// password can be wrong.
const (
	scryptN    = 1 << 16 // what is written
	minScryptN = 1 << 15
	maxScryptN = 1 << 17
	scryptR    = 8
	scryptP    = 1
	saltBytes  = 32
	nonceBytes = 24
)

// encryptedJSON is cosign's form, as go-securesystemslib writes it.
type encryptedJSON struct {
	KDF        kdfJSON    `json:"kdf"`
	Cipher     cipherJSON `json:"cipher"`
	Ciphertext []byte     `json:"ciphertext"`
}

type kdfJSON struct {
	Name   string     `json:"name"`
	Params paramsJSON `json:"params"`
	Salt   []byte     `json:"salt"`
}

type paramsJSON struct {
	N int64 `json:"N"`
	R int64 `json:"r"`
	P int64 `json:"p"`
}

type cipherJSON struct {
	Name  string `json:"name"`
	Nonce []byte `json:"nonce"`
}

func (e *encryptedJSON) read(text []byte) error {
	number := func(n *int64) reader {
		return func(r *jsonstream.Reader) (err error) { *n, err = r.Natural(); return err }
	}
	params := fields{"N": number(&e.KDF.Params.N), "r": number(&e.KDF.Params.R), "p": number(&e.KDF.Params.P)}
	return document(text, fields{
		"kdf":        fields{"name": textInto(&e.KDF.Name), "params": params.read, "salt": bytesInto(&e.KDF.Salt)}.read,
		"cipher":     fields{"name": textInto(&e.Cipher.Name), "nonce": bytesInto(&e.Cipher.Nonce)}.read,
		"ciphertext": bytesInto(&e.Ciphertext),
	})
}

// decrypt opens cosign's form of an encrypted private key. Of the text only its form
// gets into errors.
func decrypt(text []byte, password func() ([]byte, error)) ([]byte, error) {
	var e encryptedJSON
	if err := e.read(text); err != nil {
		return nil, keyErrorf("the encrypted private key is not in cosign's form")
	}
	p := e.KDF.Params
	switch {
	case e.KDF.Name != "scrypt" || e.Cipher.Name != "nacl/secretbox":
		return nil, keyErrorf("the private key is encrypted in a way that is not known, want scrypt and nacl/secretbox")
	case p.R != scryptR || p.P != scryptP || p.N&(p.N-1) != 0 || p.N < minScryptN || p.N > maxScryptN:
		return nil, keyErrorf("the private key asks for scrypt with N=%d, r=%d, p=%d, want N from %d to %d, r=%d, p=%d",
			p.N, p.R, p.P, minScryptN, maxScryptN, scryptR, scryptP)
	case len(e.Cipher.Nonce) != nonceBytes || len(e.KDF.Salt) == 0 || len(e.KDF.Salt) > 1024:
		return nil, keyErrorf("the encrypted private key has a salt or nonce of a wrong length")
	}
	if password == nil {
		return nil, &Error{Kind: ErrPassword, Msg: "the private key is encrypted, and no password was given"}
	}
	word, err := password()
	if err != nil {
		return nil, err
	}
	key, err := scrypt.Key(word, e.KDF.Salt, int(p.N), scryptR, scryptP, 32)
	if err != nil {
		return nil, keyErrorf("the private key can't be decrypted")
	}
	plain, ok := secretbox.Open(nil, e.Ciphertext, (*[nonceBytes]byte)(e.Cipher.Nonce), (*[32]byte)(key))
	if !ok {
		return nil, &Error{Kind: ErrPassword, Msg: "the password of the private key is wrong"}
	}
	return plain, nil
}

// EncryptPrivateKey writes a private key in PEM as cosign encrypts it. An empty
// password is one, too.
func EncryptPrivateKey(key *ecdsa.PrivateKey, password []byte) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, keyErrorf("the private key can't be written")
	}
	random := make([]byte, saltBytes+nonceBytes)
	rand.Read(random) // never fails
	salt, nonce := random[:saltBytes], random[saltBytes:]
	secret, err := scrypt.Key(password, salt, scryptN, scryptR, scryptP, 32)
	if err != nil {
		return nil, keyErrorf("the private key can't be encrypted")
	}
	text, err := jsonstream.Marshal(encryptedJSON{
		KDF:        kdfJSON{"scrypt", paramsJSON{scryptN, scryptR, scryptP}, salt},
		Cipher:     cipherJSON{"nacl/secretbox", nonce},
		Ciphertext: secretbox.Seal(nil, der, (*[nonceBytes]byte)(nonce), (*[32]byte)(secret)),
	}, "")
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemSigstore, Bytes: text}), nil
}

// GenerateKey makes a key on P-256, which every tool verifies.
func GenerateKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
