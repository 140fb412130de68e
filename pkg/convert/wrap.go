package convert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/carton-oci/carton-oci/internal/tomltext"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// maxShort is the longest short_description, in characters.
const maxShort = 100

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
	toml, err := wrapInfo(s.opts.Wrap, d)
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
func wrapInfo(w *Wrap, d Descriptor) ([]byte, error) {
	var b strings.Builder
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", key, tomltext.Quote(value))
		}
	}
	b.WriteString("spec_version = 1\n")
	if d.Title == "" {
		d.Title = d.Name
	}
	field("model_name", d.Title)
	if utf8.RuneCountInString(d.Description) <= maxShort {
		field("short_description", d.Description)
	} else {
		field("model_description", d.Description)
	}
	if len(d.Licenses) == 1 {
		field("license", d.Licenses[0])
	}
	field("repository", d.SourceURL)
	field("homepage", d.DocURL)
	compat := uint64(1)
	if w.CompatVersion != nil {
		compat = *w.CompatVersion
	}
	fmt.Fprintf(&b, "\n[runner]\nrunner_name = %s\nrequired_framework_version = %s\nrunner_compat_version = %d\n",
		tomltext.Quote(w.RunnerName), tomltext.Quote(w.FrameworkVersion), compat)
	if len(w.Opts) > 0 {
		b.WriteString("\n[runner.opts]\n")
	}
	for _, key := range slices.Sorted(maps.Keys(w.Opts)) {
		value, err := tomltext.Value(w.Opts[key])
		if err != nil {
			return nil, fmt.Errorf("the runner's option %s: %w", carton.QuotePath(key), err)
		}
		fmt.Fprintf(&b, "%s = %s\n", tomltext.Key(key), value)
	}
	return []byte(b.String()), nil
}
