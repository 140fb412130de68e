package main

import (
	"fmt"
	"maps"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/checkout"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

// gitFlag is of commands that make something of files.
func gitFlag(to *bool) cli.Flag {
	return yes(to, "git",
		"say which commit of which repository it is made of: of the git checkout here, or of the CI job")
}

// madeOf tells what --git is about, and warns of what is odd about it.
func (s *session) madeOf(c *cli.Context) (*checkout.Source, error) {
	source, err := checkout.Read(c.Context, ".", os.Getenv)
	if err != nil {
		flag, value := "--annotation", ocispec.AnnotationRevision+"=COMMIT"
		if c.Command.Name == "pack" {
			flag, value = "--repository", "URL"
		}
		return nil, withHint(fmt.Errorf("%s: --git: %w", c.Command.Name, err),
			"run it in the checkout, or say it yourself: %s %s", flag, value)
	}
	for _, w := range source.Warnings {
		s.warnf("--git: %s", w)
	}
	return source, nil
}

// annotateGit says in the artifact what it is made of, and in the carton that is
// packed on the way. What the user says goes before it.
func (s *session) annotateGit(c *cli.Context, o *client.PushOptions, p *pack.Options) error {
	source, err := s.madeOf(c)
	if err != nil {
		return err
	}
	p.Checkout = source.URL
	annotations := map[string]string{ocispec.AnnotationRevision: source.Revision}
	if source.URL != "" {
		annotations[ocispec.AnnotationSource] = source.URL
	}
	annotate(&o.Mapping, annotations)
	return nil
}

// annotate says of an artifact what the user has not said otherwise. It takes values.
func annotate(m *convert.Options, values map[string]string) {
	maps.Copy(values, m.Annotations)
	m.Annotations = values
}
