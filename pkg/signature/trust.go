package signature

import (
	"cmp"
	"crypto/x509"
	"slices"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// Trust says whose signatures count: those of any of the keys, and those whose
// certificate leads to one of the certificates.
type Trust struct {
	// Keys are public keys.
	Keys []*PublicKey
	// Certificates are roots, and intermediate ones where bundles don't hold them.
	Certificates []*x509.Certificate
	// Identity, where it is set, is what the signer's certificate must name: an e-mail
	// address, URI or host name.
	Identity string

	now func() time.Time // of tests
}

// IsZero reports whether nobody's signature counts.
func (t *Trust) IsZero() bool { return t == nil || len(t.Keys)+len(t.Certificates) == 0 }

// SignerID says who signed.
type SignerID struct {
	// KeyID is the sha256 of the public key's PEM, where a key was asked for.
	KeyID string `json:"keyId,omitempty"`
	// Identity is the name in the certificate, where that was asked for.
	Identity string `json:"identity,omitempty"`
	// Issuer is who issued the certificate, or vouches for a keyless identity.
	Issuer string `json:"issuer,omitempty"`
}

// String says who it is in a few words.
func (s SignerID) String() string {
	if s.Identity != "" {
		return s.Identity
	}
	return "key " + s.KeyID
}

// Verify returns what a bundle states, and who signed it. The errors are ErrSigner,
// ErrExpired, ErrKeyless and ErrFormat; for all but the last the signer is known as
// far as the bundle claims one.
func (t *Trust) Verify(b *Bundle) (*Statement, SignerID, error) {
	who, err := t.signer(b)
	if err != nil {
		return nil, who, err
	}
	s, err := parseStatement(b.payload)
	return s, who, err
}

// signer returns who of those that are trusted has signed.
func (t *Trust) signer(b *Bundle) (SignerID, error) {
	for _, k := range t.Keys {
		if verifyPayload(k.key, b.payload, b.sig) {
			return SignerID{KeyID: k.id}, nil
		}
	}
	claim := b.Claim()
	switch {
	case b.keyless:
		return claim, errorf(ErrKeyless,
			"is a keyless signature that claims to be of %s (%s), which only cosign can verify",
			errtext.Quoted(claim.Identity), errtext.Quoted(claim.Issuer))
	case len(b.chain) == 0 && len(t.Keys) == 0:
		return claim, errorf(ErrSigner, "was made with a key, and certificates were asked for")
	case len(b.chain) == 0:
		return claim, errorf(ErrSigner, "was made with another key than was asked for")
	case len(t.Certificates) == 0:
		return claim, errorf(ErrSigner, "was made with the certificate of %s, and another key was asked for",
			signerName(b.chain[0]))
	}
	leaf := b.chain[0]
	key, err := NewPublicKey(leaf.PublicKey)
	if err != nil {
		return claim, errorf(ErrSigner,
			"the certificate of %s is of a key of another kind, want ECDSA on P-256, P-384 or P-521", signerName(leaf))
	}
	if !verifyPayload(key.key, b.payload, b.sig) {
		return claim, errorf(ErrSigner, "was not made with the key of the certificate of %s that it holds",
			signerName(leaf))
	}
	if err := verifyChain(b.chain, t.Certificates, t.time()); err != nil {
		return claim, err
	}
	if t.Identity != "" && !slices.Contains(identities(leaf), t.Identity) {
		return claim, errorf(ErrSigner, "was made with the certificate of %s, want that of %s", signerName(leaf),
			errtext.Quoted(t.Identity))
	}
	if t.Identity != "" {
		claim.Identity = t.Identity
	}
	return claim, nil
}

func (t *Trust) time() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// Claim returns who the bundle claims to be of. Nothing of it is verified.
func (b *Bundle) Claim() SignerID {
	if len(b.chain) == 0 {
		return SignerID{KeyID: b.hint}
	}
	leaf := b.chain[0]
	id := SignerID{Identity: leaf.Subject.String(), Issuer: leaf.Issuer.String()}
	if ids := identities(leaf); len(ids) > 0 {
		id.Identity = ids[0]
	}
	if b.keyless {
		id.Issuer = cmp.Or(issuerOf(leaf), id.Issuer)
	}
	return id
}
