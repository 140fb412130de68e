package main

import (
	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

func (s *session) signCommand() *cli.Command {
	var o client.SignOptions
	var w signerWords
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign a carton, without reading its weights",
		ArgsUsage: "SOURCE",
		UsageText: `carton-oci sign ghcr.io/org/m:1 --key carton.key
carton-oci sign m.carton --key carton.key`,
		Description: `Signs what MANIFEST says, by the OpenSSF Model Signing specification, so that
the signature holds for the model wherever it is: as a file, unpacked, in
another registry, mounted. An artifact is signed for "cosign verify --key" too.
Its signatures are put beside it in its registry or image layout, and beside its
image form REF-image; that of a file is SOURCE.sig. Signing again changes
nothing.

An encrypted key's password is asked for on a terminal, or read from
COSIGN_PASSWORD. docs/signing.md says what a signature covers.`,
		Flags: s.flags([]cli.Flag{
			text(&o.Output, "output", "write the model's signature to `FILE` (SOURCE.sig)", "o"),
			yes(&o.Force, "force", "replace the file, if it is a signature"),
		}, signerFlags(&w, "key"), s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error { return s.runSign(c, o, w) }),
	}
}

func (s *session) runSign(c *cli.Context, o client.SignOptions, w signerWords) error {
	if w.key == "" {
		return withHint(usagef("sign", "got no private key, want --key"),
			"carton-oci keygen makes one; cosign signs without one: cosign sign REF")
	}
	ref := c.Args().Get(0)
	loc, err := s.locate(c, ref)
	if err != nil {
		return err
	}
	if err := notInside("sign", o.Output, []string{loc.Path}); o.Output != "" && err != nil {
		return err // a folder with one more file is another carton
	}
	signer, err := s.signer(c, w)
	if err != nil {
		return err
	}
	r, err := s.client.Sign(c.Context, ref, signer, o)
	if err != nil {
		return err
	}
	var bare []string
	for _, x := range r.Signatures {
		bare = append(bare, x.Path+string(x.Digest))
	}
	s.result(r, bare, func() {
		s.printSigned(r.Signatures, r.Digest)
		s.fields([2]string{"reference", r.Reference}, [2]string{"model hash", r.ModelHash},
			[2]string{"digest", r.Digest.String()},
			[2]string{"key id", r.KeyID})
	})
	return nil
}

// printSigned lists signatures that were made, of an artifact and what belongs to it.
func (s *session) printSigned(list []client.Signed, artifact digest.Digest) {
	rows := [][]string{{"SIGNATURE OF", "BESIDE", "FOR", "WHERE", ""}}
	for _, x := range list {
		beside := ""
		switch x.Subject {
		case "":
		case artifact:
			beside = "the artifact"
		default:
			beside = "the image form"
		}
		of, who := "the model", "carton-oci, model_signing"
		if x.PredicateType == signature.PredicateImage {
			of, who = beside, "carton-oci, cosign"
		}
		had := ""
		if x.Existed {
			had = "was there"
		}
		rows = append(rows, []string{of, beside, who, x.Path + string(x.Digest), had})
	}
	s.table(withoutEmpty(rows))
	s.linef("")
}
