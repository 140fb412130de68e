package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// askedOfVerify is what verify is asked about signatures.
type askedOfVerify struct {
	words   trustWords
	content bool          // read the content of registries too
	far     bool          // it is in a registry
	asked   *client.Asked // what was found; nil where nobody asked
}

// signatureItem is a signature that was judged.
type signatureItem struct {
	Of            string             `json:"of"` // a referrer's digest, or a file
	Counts        bool               `json:"counts"`
	PredicateType string             `json:"predicateType,omitempty"`
	Signer        signature.SignerID `json:"signer"` // claimed, where it does not count
	Message       string             `json:"message,omitempty"`
}

// openSigned opens the argument of verify, and refuses what is not signed by whom was
// asked for. What the signatures are worth that do not count is told then.
func (s *session) openSigned(c *cli.Context, ask *askedOfVerify) (*source, error) {
	trust, err := ask.words.trust(c)
	if err != nil {
		return nil, err
	}
	if trust == nil {
		if ask.content {
			return nil, usagef("verify",
				"--content needs --key or --certificate-chain; without them content is read anyway")
		}
		return s.openArg(c)
	}
	if err := wantArgs(c, "SOURCE"); err != nil {
		return nil, err
	}
	arg := c.Args().Get(0)
	loc, err := s.locate(c, arg)
	if err != nil {
		return nil, err
	}
	ask.far = loc.Kind == location.KindRegistry
	src, err := s.openWith(c, arg, client.OpenOptions{
		Plain: true, Trust: trust, Signature: ask.words.file, Asked: func(a *client.Asked) { ask.asked = a },
	})
	if err != nil && ask.asked != nil && len(ask.asked.Signatures) > 1 {
		for _, j := range ask.asked.Signatures {
			if j.Err != nil {
				s.warnf("the signature %s: %v", j.Of, j.Err)
			}
		}
	}
	return src, err
}

// found lists the signatures of what was opened, and what those that count say nothing
// of.
func (ask *askedOfVerify) found(src *source) (list []signatureItem, notCovered []string) {
	if ask.asked == nil {
		return nil, nil
	}
	image := false
	for _, j := range ask.asked.Signatures {
		item := signatureItem{Of: j.Of, Counts: j.Err == nil, PredicateType: j.PredicateType, Signer: j.Signer}
		if j.Err != nil {
			item.Message = j.Err.Error()
		}
		image = image || item.Counts && j.PredicateType == signature.PredicateImage
		list = append(list, item)
	}
	if src.artifact != nil {
		notCovered = append(notCovered, "tags: who may move them can bring back what was signed before")
	}
	if src.artifact != nil && !image {
		notCovered = append(notCovered, "the artifact's annotations and media types, and layers that hold no member")
	}
	if !image {
		notCovered = append(notCovered, "which members are symlinks, and modes of files")
	}
	if !src.plain() && src.loose == nil && src.Links() != nil {
		notCovered = append(notCovered, "LINKS: where members are fetched; what is fetched is hashed")
	}
	return list, notCovered
}

// signatureLines say who signed what, and what is not covered.
func signatureLines(v verdict) []string {
	var lines []string
	for _, x := range v.Signatures {
		switch {
		case !x.Counts:
			lines = append(lines, fmt.Sprintf("does not count: the signature %s: %s", x.Of, x.Message))
		case x.PredicateType == signature.PredicateImage:
			lines = append(lines, fmt.Sprintf("signed by %s: this artifact (%s)", x.Signer, x.Of))
		default:
			lines = append(lines, fmt.Sprintf("signed by %s: the model, wherever it is (%s)", x.Signer, x.Of))
		}
	}
	for _, what := range v.NotCovered {
		lines = append(lines, "not covered: "+what)
	}
	return lines
}

// countSignatures counts, while other things are read, the signatures that are listed
// beside an artifact: nil where there are none, or none can be listed. Nothing is
// verified, and whether there are any is worth no error.
func (s *session) countSignatures(ctx context.Context, src *source, ref string) <-chan *int {
	found := make(chan *int, 1)
	if src.artifact == nil || s.quiet && !s.json {
		found <- nil
		return found
	}
	go func() {
		n, err := s.client.Signatures(ctx, ref, src.artifact.Descriptor())
		if err != nil || n == 0 {
			found <- nil
			return
		}
		found <- &n
	}()
	return found
}

// shownSignatures says that there are signatures, and no more of them than is known.
func shownSignatures(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%d, not verified", *n)
}
