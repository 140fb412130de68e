package convert

import (
	"context"
	"strconv"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

// describe finds out what the weights are. A carton has one config whatever its
// form, so PT2 archives are read also where they are compressed, which costs
// passes over them.
func describe(ctx context.Context, src carton.Source, members []carton.Member, c cache) (Details, error) {
	facts, err := inspect.DescribeMembers(ctx, src, members, inspect.Options{Through: true, Recall: c.get, Remember: c.put})
	if err != nil {
		return Details{}, err
	}
	d := Details{Format: facts.Format, Precision: facts.Precision}
	if facts.Parameters >= 0 {
		d.ParamSize = paramSize(facts.Parameters)
	}
	return d, nil
}

// paramSize writes a count of parameters as people say it: 376940 is "376.9K",
// 8030261248 is "8B". Thousands, one decimal, rounded half up, ".0" left out.
func paramSize(n int64) string {
	unit, suffix := int64(1), ""
	for _, s := range []string{"K", "M", "B", "T"} {
		if n < unit*1000-unit/20 { // what rounds to 1000 is the next unit's
			break
		}
		unit, suffix = unit*1000, s
	}
	if unit == 1 {
		return strconv.FormatInt(n, 10)
	}
	tenths := n / (unit / 10)
	if n%(unit/10) >= unit/20 {
		tenths++
	}
	text := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	return text + suffix
}
