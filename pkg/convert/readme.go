package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// maxExtraBytes is the largest extra layer: larger ones Harbor does not show.
const maxExtraBytes = 4 << 20

// extraNames are the names that the page of a registry looks for, at the root
// and spelt just so, and what the file may be called in the carton.
// https://github.com/goharbor/harbor/tree/v2.13.0/src/controller/artifact/processor/cnai/parser
var extraNames = []struct {
	name  string
	files []string // in lower case
}{
	{"README.md", []string{"readme.md", "readme"}},
	{"LICENSE", []string{"license", "license.txt", "license.md"}},
}

// extraFolders are the folders where the file may lie, the first first.
var extraFolders = []string{"", "misc/", "model/"}

// findExtras finds the README and the LICENSE of a carton. Where it has no
// README, the model_description is one: both are Markdown.
func findExtras(src carton.Source, info *carton.Info, members []carton.Member) ([]*layer, error) {
	var found []*layer
	for _, want := range extraNames {
		m := findFile(members, want.files)
		switch {
		case m != nil && m.Size > maxExtraBytes:
			return nil, &carton.Error{
				Path: m.Path, Kind: carton.ErrLimit,
				Msg: fmt.Sprintf("is %d bytes, want at most %d for a registry's page", m.Size, int64(maxExtraBytes)),
			}
		case m != nil:
			open := func(ctx context.Context, off int64) (io.ReadCloser, error) {
				return openFrom(ctx, src, m.Path,
					off)
			}
			found = append(found, newExtra(want.name, digestOf(m.Hash), m.Size, open))
		case want.name == "README.md" && info.ModelDescription != "" && len(info.ModelDescription) <= maxExtraBytes:
			text := []byte(info.ModelDescription)
			found = append(found, newExtra(want.name, digest.FromBytes(text), int64(len(text)), layout.OpenBytes(text)))
		}
	}
	if len(found) == 0 {
		return nil, hint.With(errors.New("the carton has neither README nor LICENSE, and no model_description"),
			"they are looked for at the root, in misc/ and in model/; push without %s", hint.Readme)
	}
	return found, nil
}

// newExtra makes a layer that is no member of the carton: a copy of one, or of a text
// that carton.toml holds.
func newExtra(name string, dgst digest.Digest, size int64, open layout.Opener) *layer {
	return &layer{
		name: name, category: categoryDoc, format: formatRaw, extra: true,
		size: size, digest: dgst, diffID: dgst, open: open,
	}
}

// findFile returns the first member, by folder and then by name, that has one of
// the names in any case. Empty ones, which not every registry takes, are none.
func findFile(members []carton.Member, names []string) *carton.Member {
	for _, folder := range extraFolders {
		for _, name := range names {
			for i := range members {
				m := &members[i]
				dir, base := path.Split(m.Path)
				if dir == folder && strings.EqualFold(base, name) && m.Size > 0 {
					return m
				}
			}
		}
	}
	return nil
}
