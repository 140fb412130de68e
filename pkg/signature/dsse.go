package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	_ "crypto/sha256" // the hashes of the three curves
	_ "crypto/sha512"
	"fmt"
)

// payloadType is that of every statement.
// https://github.com/in-toto/attestation/blob/v1.1.0/spec/v1/envelope.md
const payloadType = "application/vnd.in-toto+json"

// preAuth is what is hashed and signed of a payload, DSSE's "pre-authentication
// encoding".
func preAuth(payload []byte) []byte {
	head := fmt.Sprintf("DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	return append([]byte(head), payload...)
}

// hashOf returns the hash that goes with a curve, 0 for a curve that isn't signed with.
func hashOf(c elliptic.Curve) crypto.Hash {
	switch c {
	case elliptic.P256():
		return crypto.SHA256
	case elliptic.P384():
		return crypto.SHA384
	case elliptic.P521():
		return crypto.SHA512
	}
	return 0
}

// sum hashes what is signed of a payload.
func sum(h crypto.Hash, payload []byte) []byte {
	hash := h.New()
	hash.Write(preAuth(payload))
	return hash.Sum(nil)
}

// signPayload signs a payload, always with the same bytes: without a source of
// randomness the nonce is that of RFC 6979.
func signPayload(key *ecdsa.PrivateKey, payload []byte) ([]byte, error) {
	h := hashOf(key.Curve)
	return key.Sign(nil, sum(h, payload), h)
}

// verifyPayload reports whether sig is the key's signature of a payload.
func verifyPayload(key *ecdsa.PublicKey, payload, sig []byte) bool {
	h := hashOf(key.Curve)
	return h != 0 && ecdsa.VerifyASN1(key, sum(h, payload), sig)
}
