package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// MaxKeyBytes is the longest file of keys or certificates that is read.
const MaxKeyBytes = 1 << 20

// The types of PEM blocks.
const (
	pemParameters  = "EC PARAMETERS"
	pemEC          = "EC PRIVATE KEY"
	pemPKCS8       = "PRIVATE KEY"
	pemEncrypted   = "ENCRYPTED PRIVATE KEY"
	pemSigstore    = "ENCRYPTED SIGSTORE PRIVATE KEY"
	pemCosign      = "ENCRYPTED COSIGN PRIVATE KEY"
	pemPublic      = "PUBLIC KEY"
	pemCertificate = "CERTIFICATE"
)

// ParsePrivateKey reads a private key in PEM: "EC PRIVATE KEY", "PRIVATE KEY", or the
// encrypted form of cosign, for which password is asked once. Its errors hold nothing
// of what was read.
func ParsePrivateKey(text []byte, password func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	block, err := privateBlock(text)
	if err != nil {
		return nil, err
	}
	der := block.Bytes
	if block.Type == pemSigstore || block.Type == pemCosign {
		if der, err = decrypt(der, password); err != nil {
			return nil, err
		}
	}
	var key any
	if block.Type == pemEC {
		key, err = x509.ParseECPrivateKey(der)
	} else {
		key, err = x509.ParsePKCS8PrivateKey(der)
	}
	if err != nil { // whose text is left out: it is about a secret
		return nil, keyErrorf("the block %s holds no private key that can be read", block.Type)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || hashOf(ec.Curve) == 0 {
		return nil, keyErrorf("the private key is of another kind, want ECDSA on P-256, P-384 or P-521")
	}
	return ec, nil
}

// privateBlock finds the one block of PEM that is a private key.
func privateBlock(text []byte) (*pem.Block, error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, keyErrorf("holds no private key in PEM")
		}
		switch block.Type {
		case pemParameters: // openssl writes them before the key
			continue
		case pemEC, pemPKCS8, pemSigstore, pemCosign:
			if len(block.Headers) == 0 {
				return block, nil
			}
			fallthrough // encrypted as of old
		case pemEncrypted:
			err := keyErrorf("the private key is encrypted in a form that is not read, want none or cosign's")
			return nil, hint.With(err, "openssl pkcs8 -in KEY -nocrypt -out PLAIN-KEY decrypts it; %s encrypts it "+
				"for cosign and for us", hint.Text("cosign import-key-pair --key PLAIN-KEY"))
		case pemPublic, pemCertificate:
			return nil, keyErrorf("holds a %s, want a private key", block.Type)
		default:
			return nil, keyErrorf("holds a block of another kind, want a private key")
		}
	}
}

// PublicKey is a key that signatures are verified with.
type PublicKey struct {
	key *ecdsa.PublicKey
	id  string
}

// NewPublicKey takes an ECDSA key of P-256, P-384 or P-521.
func NewPublicKey(key crypto.PublicKey) (*PublicKey, error) {
	ec, ok := key.(*ecdsa.PublicKey)
	if !ok || hashOf(ec.Curve) == 0 {
		return nil, keyErrorf("the public key is of another kind, want ECDSA on P-256, P-384 or P-521")
	}
	p := &PublicKey{key: ec}
	text, err := p.PEM()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	p.id = hex.EncodeToString(sum[:])
	return p, nil
}

// ID returns what a bundle's hint calls the key: the sha256 of its PEM.
func (p *PublicKey) ID() string { return p.id }

// PEM returns the key as a file.
func (p *PublicKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(p.key)
	if err != nil {
		return nil, keyErrorf("the public key is none: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}), nil
}

// ParsePublicKeys reads all public keys of a file in PEM, those of certificates too:
// a certificate given as a key is only a key.
func ParsePublicKeys(text []byte) ([]*PublicKey, error) {
	var keys []*PublicKey
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		var key any
		var err error
		switch block.Type {
		case pemPublic:
			key, err = x509.ParsePKIXPublicKey(block.Bytes)
		case pemCertificate:
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = c.PublicKey
			}
		case pemEC, pemPKCS8, pemEncrypted, pemSigstore, pemCosign:
			return nil, keyErrorf("holds a private key, want a public one")
		default:
			return nil, keyErrorf("holds a block of type %s, want %s", errtext.Quoted(block.Type), pemPublic)
		}
		if err != nil {
			return nil, keyErrorf("the block %s holds no public key that can be read: %v", block.Type, err)
		}
		p, err := NewPublicKey(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, p)
	}
	if len(keys) == 0 {
		return nil, keyErrorf("holds no public key in PEM")
	}
	return keys, nil
}

func keyErrorf(format string, args ...any) *Error {
	return &Error{Kind: ErrKey, Msg: fmt.Sprintf(format, args...)}
}
