package signature

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// Statement is what somebody has signed.
type Statement struct {
	// PredicateType is one of the constants of this package, or anybody's.
	PredicateType string
	// Name is what the signer calls a model.
	Name string
	// Digest is the subject's, in lower-case hex sha256: a model's root digest, or an
	// image manifest's digest. Of statements of other kinds it is "".
	Digest string

	resources []resourceJSON
}

// parseStatement reads a statement that was verified. Of kinds that are not this
// package's it returns the predicate type alone.
func parseStatement(payload []byte) (*Statement, error) {
	s := &Statement{}
	anything := fields{"_type": skip, "subject": skip, "predicateType": textInto(&s.PredicateType), "predicate?": skip}
	if err := document(payload, anything); err != nil {
		return nil, &Error{Kind: ErrFormat, Msg: "holds no statement", Err: err}
	}
	kind, predicate, named := "", skip, ""
	switch s.PredicateType {
	case PredicateModel:
		predicate, named = s.readModel, "name"
	case PredicateImage:
		named = "name?"
	default:
		return s, nil
	}
	err := document(payload, fields{
		"_type": textInto(&kind), "predicateType": skip, "predicate": predicate,
		"subject": func(r *jsonstream.Reader) error { return s.readSubject(r, named) },
	})
	switch {
	case err != nil:
	case kind != StatementType:
		err = fmt.Errorf("got the type %s, want %s", errtext.Quoted(kind), StatementType)
	case s.PredicateType == PredicateModel:
		err = s.checkModel()
	}
	if err != nil {
		return nil, &Error{Kind: ErrFormat, Msg: "the statement is wrong", Err: err}
	}
	return s, nil
}

// readSubject reads the one thing that the statement is about.
func (s *Statement) readSubject(r *jsonstream.Reader, named string) error {
	count := 0
	err := r.Array(func() error {
		if count++; count > 1 {
			return fmt.Errorf("has more than one subject")
		}
		f := fields{named: textInto(&s.Name), "digest": fields{"sha256": textInto(&s.Digest)}.read}
		if s.PredicateType == PredicateImage {
			f["annotations?"] = skip
		}
		return f.read(r)
	})
	switch {
	case err != nil:
	case count == 0:
		err = fmt.Errorf("has no subject")
	case !sha256hex.Is(s.Digest):
		err = fmt.Errorf("the subject's digest is not %s", sha256hex.Want)
	}
	return err
}

func (s *Statement) readModel(r *jsonstream.Reader) error {
	method, hash := "", ""
	serialization := fields{
		"method": textInto(&method), "hash_type": textInto(&hash),
		// Another tool may be told to ignore something; here nothing is.
		"allow_symlinks": func(r *jsonstream.Reader) error { _, err := r.Bool(); return err },
		"ignore_paths?":  skip, "shard_size?": skip,
	}
	err := fields{
		"serialization": serialization.read,
		"resources":     func(r *jsonstream.Reader) error { return r.Array(func() error { return s.readResource(r) }) },
	}.read(r)
	if err == nil && (method != "files" || hash != "sha256") {
		err = fmt.Errorf("is by %s with %s, and MANIFEST can only be compared with files and sha256",
			errtext.Quoted(method), errtext.Quoted(hash))
	}
	return err
}

func (s *Statement) readResource(r *jsonstream.Reader) error {
	if len(s.resources) > carton.MaxMembers {
		return fmt.Errorf("has more than %d resources", carton.MaxMembers)
	}
	var x resourceJSON
	err := fields{
		"name": textInto(&x.Name), "algorithm": textInto(&x.Algorithm), "digest": textInto(&x.Digest),
		"*": skip,
	}.read(r)
	s.resources = append(s.resources, x)
	return err
}

// checkModel holds a model's statement against itself: order, digests, the root.
func (s *Statement) checkModel() error {
	for _, x := range s.resources {
		if x.Algorithm != "sha256" || !sha256hex.Is(x.Digest) {
			return fmt.Errorf("%s: the digest is not a sha256 of %s", errtext.Quote(x.Name), sha256hex.Want)
		}
	}
	// The specification's order, and that of its reference implementation.
	if !inOrder(s.resources, strings.Compare) && !inOrder(s.resources, compareComponents) {
		return fmt.Errorf("the names are not in order, or one occurs twice")
	}
	if got := root(s.resources); got != s.Digest {
		return fmt.Errorf("the resources have the root digest %s, and the subject is %s", got, s.Digest)
	}
	return nil
}

func inOrder(list []resourceJSON, compare func(a, b string) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1].Name, list[i].Name) >= 0 {
			return false
		}
	}
	return true
}

// compareComponents orders paths as lists of names.
func compareComponents(a, b string) int {
	return slices.Compare(strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/"))
}
