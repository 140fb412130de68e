package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// FieldChange is a field of carton.toml that differs. A or B is "" where the
// field is missing; other values are as TOML writes them.
type FieldChange struct {
	Field string `json:"field"` // "runner.runner_name", "input.x.shape"
	A     string `json:"a"`     // as TOML writes it; "" where it is missing
	B     string `json:"b"`
}

// compareInfo compares carton.toml field by field, where its bytes differ. One
// that breaks the format is a note.
func (d *Difference) compareInfo(ctx context.Context, a, b carton.Source) error {
	i := slices.IndexFunc(d.Changed, func(c Change) bool { return c.A.Path == carton.InfoName })
	if i < 0 {
		return nil
	}
	fields := [2]map[string]string{{}, {}}
	for n, src := range []carton.Source{a, b} {
		text, err := carton.ReadMember(ctx, src, carton.InfoName, carton.MaxInfoBytes)
		if err != nil {
			return err
		}
		info, err := carton.ParseInfo(text)
		if err != nil {
			note := strings.TrimPrefix(err.Error(), carton.InfoName+": ")
			d.Notes = append(d.Notes, Note{
				Member: carton.InfoName,
				Text:   [2]string{"of the first carton: ", "of the second carton: "}[n] + note,
			})
			return nil
		}
		for _, f := range info.Fields() {
			fields[n][f.Key] = f.TOML
		}
	}
	names := maps.Clone(fields[0])
	maps.Copy(names, fields[1])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := fields[0][name], fields[1][name]; x != y {
			d.Info = append(d.Info, FieldChange{name, x, y})
		}
	}
	return nil
}
