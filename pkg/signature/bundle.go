package signature

import (
	"crypto/x509"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

const (
	// MediaType is that of a bundle.
	MediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// MaxBundleBytes is the longest bundle that is read. That of a model with
	// [carton.MaxMembers] members is shorter.
	MaxBundleBytes = 80 << 20
	// MaxCertificates is the most that a chain may have.
	MaxCertificates = 16
)

// MaxBytesOf returns the longest that a bundle about the model may be, so that less is
// fetched from strangers: more than any writer's layout of its statement in base64.
func MaxBytesOf(m *carton.Manifest) int64 {
	most := int64(256 << 10)
	if m != nil {
		most += 2 * (m.Len() + 512*int64(len(m.Entries())))
	}
	return min(most, MaxBundleBytes)
}

// Bundle is a signed statement, and what it was signed with. [Parse] reads one,
// [Signer] makes one.
type Bundle struct {
	payload []byte // the statement
	sig     []byte
	hint    string              // of a key; believed nowhere
	chain   []*x509.Certificate // leaf first
	keyless bool                // a transparency log or a clock is needed to judge it
}

// The JSON of a bundle, in the order of the specification.
type (
	bundleJSON struct {
		MediaType string       `json:"mediaType"`
		Material  materialJSON `json:"verificationMaterial"`
		Envelope  envelopeJSON `json:"dsseEnvelope"`
	}
	materialJSON struct {
		PublicKey   *publicKeyJSON   `json:"publicKey,omitempty"`
		Certificate *certificateJSON `json:"certificate,omitempty"`
		Chain       *chainJSON       `json:"x509CertificateChain,omitempty"`
		LogEntries  []struct{}       `json:"tlogEntries"`
	}
	publicKeyJSON struct {
		Hint string `json:"hint"`
	}
	certificateJSON struct {
		Raw []byte `json:"rawBytes"`
	}
	chainJSON struct {
		Certificates []certificateJSON `json:"certificates"`
	}
	envelopeJSON struct {
		Payload     []byte          `json:"payload"`
		PayloadType string          `json:"payloadType"`
		Signatures  []signatureJSON `json:"signatures"`
	}
	signatureJSON struct {
		Sig []byte `json:"sig"`
	}
)

// marshal writes the bundle. leafOnly names the signer's certificate alone, which is
// all that cosign reads.
func (b *Bundle) marshal(leafOnly bool) ([]byte, error) {
	out := bundleJSON{
		MediaType: MediaType,
		Material:  materialJSON{LogEntries: []struct{}{}},
		Envelope:  envelopeJSON{b.payload, payloadType, []signatureJSON{{b.sig}}},
	}
	switch m := &out.Material; {
	case len(b.chain) == 0:
		m.PublicKey = &publicKeyJSON{b.hint}
	case leafOnly:
		m.Certificate = &certificateJSON{b.chain[0].Raw}
	default:
		m.Chain = &chainJSON{}
		for _, c := range b.chain {
			m.Chain.Certificates = append(m.Chain.Certificates, certificateJSON{c.Raw})
		}
	}
	return jsonstream.Marshal(out, "")
}
