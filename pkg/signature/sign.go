package signature

import (
	"crypto/ecdsa"
	"crypto/x509"
	"time"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Signer signs statements. It may be used by many goroutines at once.
type Signer struct {
	key    *ecdsa.PrivateKey
	public *PublicKey
	chain  []*x509.Certificate
}

// NewSigner returns the signer of a key. With certificates, leaf first, bundles hold
// them instead of the key's hint: the leaf must be the key's, and valid now. A root
// among them is left out, because who verifies brings his own.
func NewSigner(key *ecdsa.PrivateKey, certificates []*x509.Certificate) (*Signer, error) {
	public, err := NewPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	s := &Signer{key: key, public: public}
	for i, c := range certificates {
		if i > 0 && isRoot(c) {
			continue
		}
		s.chain = append(s.chain, c)
	}
	if len(s.chain) == 0 {
		return s, nil
	}
	leaf, now := s.chain[0], time.Now()
	switch {
	case len(s.chain) > MaxCertificates:
		return nil, keyErrorf("got %d certificates, want at most %d", len(s.chain), MaxCertificates)
	case !key.PublicKey.Equal(leaf.PublicKey):
		return nil, keyErrorf("the certificate of %s is of another key", signerName(leaf))
	case now.Before(leaf.NotBefore) || now.After(leaf.NotAfter):
		return nil, errorf(ErrExpired, "the certificate of %s is valid from %s to %s", signerName(leaf),
			day(leaf.NotBefore), day(leaf.NotAfter))
	}
	return s, nil
}

// PublicKey returns the signer's public key.
func (s *Signer) PublicKey() *PublicKey { return s.public }

// SignModel returns the bundle over what MANIFEST says of a model: see [NewModel].
func (s *Signer) SignModel(m *carton.Manifest, name string) ([]byte, error) {
	payload, err := NewModel(m, name)
	if err != nil {
		return nil, err
	}
	return s.bundle(payload, false)
}

// SignImage returns the bundle over an image manifest's digest, in lower-case hex
// sha256, that cosign verifies: see [NewImage].
func (s *Signer) SignImage(digest string) ([]byte, error) {
	payload, err := NewImage(digest)
	if err != nil {
		return nil, err
	}
	return s.bundle(payload, true)
}

func (s *Signer) bundle(payload []byte, leafOnly bool) ([]byte, error) {
	sig, err := signPayload(s.key, payload)
	if err != nil {
		return nil, keyErrorf("can't sign")
	}
	b := &Bundle{payload: payload, sig: sig, hint: s.public.id, chain: s.chain}
	return b.marshal(leafOnly)
}
