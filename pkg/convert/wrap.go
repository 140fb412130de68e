package convert

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/tomltext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// wrap generates the carton.toml of a plain model: what the caller says, and
// what the artifact's config says about itself.
func (s *Source) wrap(ctx context.Context) error {
	var d Descriptor
	for _, t := range families {
		if s.manifest.Config.MediaType != t.config {
			continue
		}
		b, err := layout.ReadBlob(ctx, s.fetcher, s.manifest.Config, layout.MaxConfigBytes)
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
		// A config that is not as specified makes the model no worse.
		if c, err := ParseModelConfig(b); err == nil {
			d = c.Descriptor
		}
		break
	}
	toml, err := wrapInfo(*s.opts.Wrap, d)
	if err != nil {
		return err
	}
	if _, err := carton.ParseInfo(toml); err != nil {
		return err
	}
	s.generated = map[string][]byte{carton.InfoName: toml}
	return nil
}

// wrapInfo writes a carton.toml. Its bytes depend on its arguments alone.
func wrapInfo(runner carton.Runner, d Descriptor) ([]byte, error) {
	if d.Title == "" {
		d.Title = d.Name
	}
	info := carton.Info{ModelName: d.Title, Repository: d.SourceURL, Homepage: d.DocURL, Runner: runner}
	if len(d.Licenses) == 1 {
		info.License = d.Licenses[0]
	}
	if utf8.RuneCountInString(d.Description) <= carton.ShortDescriptionChars {
		info.ShortDescription = d.Description
	} else {
		info.ModelDescription = d.Description
	}
	if runner.CompatVersion == nil {
		compat := uint64(1)
		info.Runner.CompatVersion = &compat
	}
	toml, err := info.Marshal()
	// Here a description of several lines is written on one.
	lines, line := tomltext.Lines(info.ModelDescription), tomltext.Quote(info.ModelDescription)
	return bytes.Replace(toml, []byte(lines), []byte(line), 1), err
}
