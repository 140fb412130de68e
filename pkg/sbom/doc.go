// Package sbom describes a carton as a bill of materials that other tools read: a
// CycloneDX ML-BOM, made of MANIFEST, carton.toml and the headers of weights, without
// the weights.
//
// # Rules that this package keeps
//
// The document is a function of the model: no dates, no randomness, and a serial number
// that follows from its content. Nothing is in it that the model does not say: what
// data it was trained on, nobody knows here.
//
// Hashes are MANIFEST's. The model's own is the model hash, which is the sha256 of
// MANIFEST and so of a file that the model has.
//
// https://cyclonedx.org/docs/1.6/json/
package sbom
