// Package signature signs models and artifacts, and says whose signature one is:
// bundles of the OpenSSF Model Signing specification over a carton's MANIFEST, and
// those that cosign verifies over an artifact's digest. It knows neither
// registries nor files: who calls it brings the bytes.
//
// # The two statements
//
// A bundle is sigstore's, version 0.3: a DSSE envelope around an in-toto statement,
// with one signature and what it was made with, a key or a certificate chain.
//
// [NewModel] states what MANIFEST says: the sha256 of every member and of MANIFEST
// itself. It names no place and no form, so that it holds for the zip, the folder,
// the thin carton, every artifact and image of the model, and where it is mounted.
//
// [NewImage] states one image manifest's digest, in the form that cosign writes and
// verifies. It holds for byte-for-byte copies of that artifact.
//
// # Rules that this package keeps
//
// What is signed is a pure function of what it is about and of the key: no dates, no
// randomness (RFC 6979). Signing twice gives the same bytes.
//
// A key is never taken from a bundle. [Trust] holds the keys and certificates that
// count; the hint of a bundle is not looked at.
//
// The bytes that were verified are the bytes that are parsed. Unknown fields, keys
// that occur twice, more than one signature, another payload type and data behind the
// end are errors. The root digest is computed again, resources must be in order, and
// must be MANIFEST's lines and MANIFEST, no more and no less.
//
// A certificate is judged as of now: what has expired counts no longer.
//
// Keys are ECDSA on P-256, P-384 and P-521, with the hash of the curve's size, because
// the tools of model signing accept nothing else. No error holds a byte of a private
// key or of a password.
//
// Keyless signatures, with short-lived certificates and entries of a transparency log,
// are recognised ([ErrKeyless]) and left to cosign.
//
// Specifications:
//   - https://github.com/ossf/model-signing-spec/blob/a0c91e2/spec/v1.0.md
//   - https://github.com/sigstore/protobuf-specs/blob/104df67/protos/sigstore_bundle.proto
//   - https://github.com/secure-systems-lab/dsse/blob/eebf7b5/protocol.md
//   - https://github.com/sigstore/cosign/blob/v3.1.3/specs/BUNDLE_SPEC.md
package signature
