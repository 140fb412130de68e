package signature

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

// Parse reads a bundle, and verifies nothing. It must be all there is, with nothing
// unknown in it and one signature.
func Parse(raw []byte) (*Bundle, error) {
	if len(raw) > MaxBundleBytes {
		return nil, errorf(ErrLimit, "the bundle has %d bytes, and may have at most %d", len(raw), MaxBundleBytes)
	}
	b := &Bundle{}
	mediaType := ""
	err := document(raw, fields{
		"mediaType":            textInto(&mediaType),
		"verificationMaterial": b.readMaterial,
		"dsseEnvelope":         b.readEnvelope,
	})
	switch {
	case err != nil:
		return nil, &Error{Kind: ErrFormat, Msg: "is no bundle of a signature", Err: err}
	case mediaType != MediaType:
		return nil, errorf(ErrFormat, "is a bundle of type %s, want %s", errtext.Quoted(mediaType), MediaType)
	}
	return b, nil
}

// reader reads one JSON value.
type reader = func(r *jsonstream.Reader) error

// fields are the keys that an object may have, and how their values are read. A "?"
// at the end says that it may be missing; "*" stands for all that are not named.
type fields map[string]reader

// document reads JSON that is one object with fields.
func document(raw []byte, f fields) error {
	r := jsonstream.New(bytes.NewReader(raw))
	r.Longest = MaxBundleBytes
	if err := f.read(r); err != nil {
		return err
	}
	return r.End()
}

// read reads an object that has all fields that may not be missing, once each, and no
// other.
func (f fields) read(r *jsonstream.Reader) error {
	seen := map[string]bool{}
	err := r.Object(func(key string) error {
		read := f["*"]
		for _, name := range []string{key + "?", key} {
			if named := f[name]; named != nil && !strings.HasSuffix(key, "?") { // a mark of ours
				read = named
			}
		}
		if read == nil {
			return fmt.Errorf("has the unknown field %s", errtext.Quoted(key))
		}
		seen[key] = true
		return read(r)
	})
	if err != nil {
		return err
	}
	missing := ""
	for key := range f {
		if !strings.HasSuffix(key, "?") && key != "*" && !seen[key] && (missing == "" || key < missing) {
			missing = key
		}
	}
	if missing != "" {
		return fmt.Errorf("lacks the field %s", missing)
	}
	return nil
}

// textInto reads a string.
func textInto(s *string) reader {
	return func(r *jsonstream.Reader) (err error) {
		*s, err = r.String()
		return err
	}
}

// bytesInto reads base64: standard or URL-safe, as DSSE wants.
func bytesInto(b *[]byte) reader {
	return func(r *jsonstream.Reader) error {
		s, err := r.String()
		if err != nil {
			return err
		}
		encoding := base64.StdEncoding
		if strings.ContainsAny(s, "-_") {
			encoding = base64.URLEncoding
		}
		if *b, err = encoding.Strict().DecodeString(s); err != nil || strings.ContainsAny(s, "\r\n") {
			return fmt.Errorf("holds no base64 before byte %d", r.Offset())
		}
		return nil
	}
}

// skip reads any value.
func skip(r *jsonstream.Reader) error { return r.Skip() }

func (b *Bundle) readMaterial(r *jsonstream.Reader) error {
	kinds, entries := 0, false
	err := fields{
		"publicKey?": func(r *jsonstream.Reader) error {
			kinds++
			// Bundles of model_signing before 1.1 hold the key itself.
			return fields{"hint?": textInto(&b.hint), "rawBytes?": skip, "keyDetails?": skip}.read(r)
		},
		"certificate?":          func(r *jsonstream.Reader) error { kinds++; return b.readCertificate(r) },
		"x509CertificateChain?": func(r *jsonstream.Reader) error { kinds++; return b.readChain(r) },
		"tlogEntries?": func(r *jsonstream.Reader) error {
			return r.Array(func() error { entries = true; return logEntry().read(r) })
		},
		"timestampVerificationData?": func(r *jsonstream.Reader) error {
			return fields{"rfc3161Timestamps?": func(r *jsonstream.Reader) error {
				return r.Array(func() error { entries = true; return fields{"signedTimestamp?": skip}.read(r) })
			}}.read(r)
		},
	}.read(r)
	if err == nil && kinds != 1 {
		err = fmt.Errorf("got %d kinds of keys and certificates, want 1", kinds)
	}
	b.keyless = entries && len(b.chain) > 0
	return err
}

// logEntry are the fields of a transparency log's entry. They are cosign's to judge.
func logEntry() fields {
	checkpoint := fields{"envelope?": skip}
	proof := fields{
		"logIndex?": skip, "rootHash?": skip, "treeSize?": skip, "hashes?": skip, "checkpoint?": checkpoint.read,
	}
	return fields{
		"logIndex?": skip, "logId?": fields{"keyId?": skip}.read,
		"kindVersion?":    fields{"kind?": skip, "version?": skip}.read,
		"integratedTime?": skip, "inclusionPromise?": fields{"signedEntryTimestamp?": skip}.read,
		"inclusionProof?":    proof.read,
		"canonicalizedBody?": skip,
	}
}

func (b *Bundle) readCertificate(r *jsonstream.Reader) error {
	if len(b.chain) == MaxCertificates {
		return fmt.Errorf("has more than %d certificates", MaxCertificates)
	}
	var der []byte
	if err := (fields{"rawBytes": bytesInto(&der)}).read(r); err != nil {
		return err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("has a certificate that can't be read: %w", err)
	}
	b.chain = append(b.chain, c)
	return nil
}

func (b *Bundle) readChain(r *jsonstream.Reader) error {
	err := fields{"certificates": func(r *jsonstream.Reader) error {
		return r.Array(func() error { return b.readCertificate(r) })
	}}.read(r)
	if err == nil && len(b.chain) == 0 {
		err = fmt.Errorf("has a chain without certificates")
	}
	return err
}

func (b *Bundle) readEnvelope(r *jsonstream.Reader) error {
	kind, count := "", 0
	err := fields{
		"payload":     bytesInto(&b.payload),
		"payloadType": textInto(&kind),
		"signatures": func(r *jsonstream.Reader) error {
			return r.Array(func() error {
				if count++; count > 1 {
					return fmt.Errorf("has more than one signature, want 1")
				}
				return fields{"sig": bytesInto(&b.sig), "keyid?": skip}.read(r)
			})
		},
	}.read(r)
	switch {
	case err != nil:
		return err
	case count == 0:
		return fmt.Errorf("has no signature")
	case kind != payloadType:
		return fmt.Errorf("has a payload of type %s, want %s", errtext.Quoted(kind), payloadType)
	}
	return nil
}
