package signature

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// ParseCertificates reads all certificates of a file in PEM.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != pemCertificate {
			return nil, keyErrorf("holds a block of type %s, want %s", errtext.Quoted(block.Type), pemCertificate)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, keyErrorf("holds a certificate that can't be read: %v", err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, keyErrorf("holds no certificate in PEM")
	}
	return list, nil
}

// isRoot reports whether a certificate is signed by itself.
func isRoot(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignatureFrom(c) == nil
}

// verifyChain holds a chain, leaf first, against certificates that are trusted. Of
// those that are given, the ones that are signed by themselves are trusted and the
// others may lead to them; where none is, all are trusted.
func verifyChain(chain, given []*x509.Certificate, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	anyRoot := false
	for _, c := range given {
		anyRoot = anyRoot || isRoot(c)
	}
	for _, c := range given {
		if anyRoot && !isRoot(c) {
			between.AddCert(c)
		} else {
			roots.AddCert(c)
		}
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	leaf := chain[0]
	opts := x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		// A certificate that says what it is for must say code signing.
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	_, err := leaf.Verify(opts)
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return errorf(ErrExpired,
			"the certificate of %s, or one that it hangs on, is not valid now: %s is from %s to %s",
			signerName(leaf), signerName(invalid.Cert), day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case err != nil:
		return &Error{Kind: ErrSigner, Msg: "the certificate of " + signerName(leaf) +
			" does not lead to one that was asked for", Err: err}
	case leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 && (leaf.KeyUsage != 0 || !isCodeSigning(leaf)):
		return errorf(ErrSigner, "the certificate of %s is not for signatures", signerName(leaf))
	}
	return nil
}

func isCodeSigning(c *x509.Certificate) bool {
	for _, u := range c.ExtKeyUsage {
		if u == x509.ExtKeyUsageCodeSigning {
			return true
		}
	}
	return false
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// identities returns the names that a certificate's subject has elsewhere.
func identities(c *x509.Certificate) []string {
	var list []string
	list = append(list, c.EmailAddresses...)
	for _, u := range c.URIs {
		list = append(list, u.String())
	}
	return append(list, c.DNSNames...)
}

// signerName says whose certificate it is.
func signerName(c *x509.Certificate) string {
	name := ""
	if ids := identities(c); len(ids) > 0 {
		name = ids[0]
	}
	return errtext.Quoted(cmp.Or(name, c.Subject.String(), "nobody named"))
}

// The extensions in which Fulcio says who vouches for an identity.
// https://github.com/sigstore/fulcio/blob/v1.7.1/docs/oid-info.md
var (
	oidIssuer   = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	oidIssuerV1 = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
)

// issuerOf returns the identity provider that a keyless certificate names, "" for none.
func issuerOf(c *x509.Certificate) string {
	old := ""
	for _, x := range c.Extensions {
		switch {
		case x.Id.Equal(oidIssuer):
			var s string
			if rest, err := asn1.Unmarshal(x.Value, &s); err == nil && len(rest) == 0 {
				return s
			}
		case x.Id.Equal(oidIssuerV1):
			old = string(x.Value)
		}
	}
	return old
}
