package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"k", 1 << 10},
	{"m", 1 << 20},
	{"g", 1 << 30},
	{"b", 1},
}

// parseSize reads a size in bytes: a whole number with one of the units B, kB,
// MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024), in any case, or none. K, M and G alone are KiB, MiB and
// GiB, as docker and ls -h have them.
func parseSize(text string) (int64, error) {
	number, factor := strings.ToLower(text), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	if err != nil || int64(n) > math.MaxInt64/factor {
		return 0, errors.New("got " + strconv.Quote(text) +
			", want a size such as 64KiB, 1MB, 1M (which is 1MiB) or 4096")
	}
	return int64(n) * factor, nil
}
