package signature

import (
	"errors"
	"fmt"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Subject is what a signature is wanted of.
type Subject struct {
	// Model is the MANIFEST of the model; nil where there is none of its author's.
	Model *carton.Manifest
	// Image is the digest of the image manifest, in lower-case hex sha256; "" where it
	// is no artifact.
	Image string
}

// Judgement says what one signature is worth.
type Judgement struct {
	// Of is where the signature is: a digest or a file.
	Of string `json:"of"`
	// PredicateType says what it states; "" where that was not verified.
	PredicateType string `json:"predicateType,omitempty"`
	// Signer is who signed; where Err is set, who is claimed to have.
	Signer SignerID `json:"signer"`
	// Err says why it does not count, nil where it does.
	Err error `json:"-"`
}

// Judge says whether a bundle is a signature of the subject that counts.
func (t *Trust) Judge(of string, raw []byte, about Subject) Judgement {
	j := Judgement{Of: of}
	b, err := Parse(raw)
	if err != nil {
		j.Err = err
		return j
	}
	s, who, err := t.Verify(b)
	j.Signer, j.Err = who, err
	if err == nil {
		j.PredicateType, j.Err = s.PredicateType, s.Check(about)
	}
	return j
}

// Check returns nil where the statement is about the subject.
func (s *Statement) Check(about Subject) error {
	switch {
	case s.PredicateType == PredicateModel && about.Model == nil:
		return errorf(ErrModel, "is the signature of a model, and what is here holds no MANIFEST of its author's")
	case s.PredicateType == PredicateModel:
		return s.compare(about.Model)
	case s.PredicateType != PredicateImage:
		return errorf(ErrPredicate, "states %s, and not whose model it is", errtext.Quoted(s.PredicateType))
	case about.Image == "":
		return errorf(ErrModel, "is the signature of an artifact, and this is none")
	case s.Digest != about.Image:
		return errorf(ErrModel, "is the signature of another artifact: got sha256:%s, want sha256:%s", s.Digest,
			about.Image)
	}
	return nil
}

// compare holds the members that are signed against MANIFEST: all of it, and nothing
// besides.
func (s *Statement) compare(m *carton.Manifest) error {
	signed := make(map[string]string, len(s.resources))
	for _, r := range s.resources {
		signed[r.Name] = r.Digest
	}
	hash, whole := signed[carton.ManifestName]
	if whole && hash != m.ModelHash() {
		return errorf(ErrModel, "is the signature of another model: got the model hash %s, want %s", hash,
			m.ModelHash())
	}
	delete(signed, carton.ManifestName)
	for _, e := range m.Entries() {
		hash, ok := signed[e.Path]
		switch {
		case !ok && isIgnored(e.Path): // MANIFEST binds it
		case !ok:
			return errorf(ErrModel, "is the signature of another model: it lacks %s", errtext.Quote(e.Path))
		case hash != e.Hash:
			return errorf(ErrModel, "is the signature of another model: %s has another hash", errtext.Quote(e.Path))
		}
		delete(signed, e.Path)
	}
	for _, r := range s.resources {
		if _, more := signed[r.Name]; more {
			return errorf(ErrModel, "is the signature of another model: it has %s too", errtext.Quote(r.Name))
		}
	}
	if whole {
		return nil
	}
	return errorf(ErrModel, "is a signature of the model's files that leaves out MANIFEST, and with it the model hash")
}

// Decide returns nil where a judgement counts, else the most telling error: one about
// what was signed by whom was asked for, before one about other signers, before what
// can't be read.
func Decide(list []Judgement) error {
	if len(list) == 0 {
		return errorf(ErrNotSigned, "has no signature")
	}
	order := []error{ErrModel, ErrExpired, ErrPredicate, ErrSigner, ErrKeyless, ErrLimit, ErrFormat}
	best, rank := error(nil), len(order)+1
	for _, j := range list {
		if j.Err == nil {
			return nil
		}
		at := 0
		for at < len(order) && !errors.Is(j.Err, order[at]) {
			at++
		}
		if at < rank {
			best, rank = fmt.Errorf("the signature %s: %w", errtext.Short(j.Of), j.Err), at
		}
	}
	if n := len(list) - 1; n > 0 {
		best = fmt.Errorf("%w (and %d more that do not count)", best, n)
	}
	return best
}
