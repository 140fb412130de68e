package convert

import (
	"context"
	"slices"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

// describe finds out what the weights are. A carton has one config whatever its
// form, so PT2 archives are read also where they are compressed, which costs
// passes over them.
func describe(ctx context.Context, src carton.Source, members []carton.Member) (Details, []inspect.Note, error) {
	facts, err := inspect.DescribeMembers(ctx, src, members, inspect.Options{Through: true})
	if err != nil {
		return Details{}, nil, err
	}
	d := Details{Format: facts.Format, Precision: facts.Precision}
	if facts.Parameters >= 0 {
		d.ParamSize = inspect.ParamSize(facts.Parameters)
	}
	return d, slices.Concat(facts.Notes, facts.Findings), nil
}
