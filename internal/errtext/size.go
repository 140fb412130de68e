package errtext

import "strconv"

// Size writes a number of bytes for people: powers of 1000, one decimal below
// ten. -1 is a size that is not known.
func Size(n int64) string {
	if n < 0 {
		return "?"
	}
	value := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB", "EB"} {
		if n < 1000 {
			break
		}
		value /= 1000
		switch {
		case value < 9.95:
			return strconv.FormatFloat(value, 'f', 1, 64) + " " + unit
		case value < 999.5:
			return strconv.FormatFloat(value, 'f', 0, 64) + " " + unit
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}
