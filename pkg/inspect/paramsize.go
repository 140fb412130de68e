package inspect

import "strconv"

// ParamSize writes a count of parameters as people say it: 376940 is "376.9K",
// 8030261248 is "8B". Thousands, one decimal, rounded half up, ".0" left out.
func ParamSize(n int64) string {
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
