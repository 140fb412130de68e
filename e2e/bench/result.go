package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// book is everything that was measured, the latest of each case.
type book struct {
	Machine string
	Results []result // in the order of the cases
}

// result is what one case gave.
type result struct {
	Case     string
	Title    string
	When     string // a date
	Programs []measured
	Verdicts []verdict
}

// measured are the runs of one program.
type measured struct {
	Name string
	Runs []figures
}

// verdict is one thing that was wanted, and what was got.
type verdict struct {
	Wanted string
	Got    string
	OK     bool
}

func readBook(name string) (*book, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &book{}, nil
	}
	if err != nil {
		return nil, err
	}
	var b book
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &b, nil
}

func (b *book) write(name string) error {
	text, err := json.MarshalIndent(b, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// put replaces a case's result.
func (b *book) put(r result) {
	b.Results = slices.DeleteFunc(b.Results, func(old result) bool { return old.Case == r.Case })
	b.Results = append(b.Results, r)
	order := func(r result) int { return slices.IndexFunc(cases, func(c benchCase) bool { return c.name == r.Case }) }
	slices.SortFunc(b.Results, func(x, y result) int { return order(x) - order(y) })
}

// runs returns the runs of a program, nil if it did not run.
func (r result) runs(name string) []figures {
	for _, m := range r.Programs {
		if m.Name == name {
			return m.Runs
		}
	}
	return nil
}

// spread is a figure that was measured several times.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// of returns the spread of one figure over runs.
func of(runs []figures, figure func(figures) float64) spread {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = figure(f)
	}
	return spreadOf(values)
}

// ratios returns the spread of ours to theirs, run by run.
func ratios(ours, theirs []figures, figure func(figures) float64) spread {
	var values []float64
	for i := range min(len(ours), len(theirs)) {
		if d := figure(theirs[i]); d > 0 {
			values = append(values, figure(ours[i])/d)
		}
	}
	return spreadOf(values)
}

func wall(f figures) float64    { return f.Wall }
func cpu(f figures) float64     { return f.CPU }
func peakOf(f figures) float64  { return float64(f.Peak) }
func sent(f figures) float64    { return float64(f.In) }
func got(f figures) float64     { return float64(f.Out) }
func written(f figures) float64 { return float64(f.Written) }
func read(f figures) float64    { return float64(f.Read) }

// onDisk is the wall time with the fsync that others leave undone.
func onDisk(f figures) float64 { return f.Wall + f.After }

// atMost is a verdict on a ratio to another program.
func (r result) atMost(limit float64, wanted, than string, figure func(figures) float64) verdict {
	theirs := r.runs(than)
	if theirs == nil {
		return verdict{wanted, than + " is not installed", false}
	}
	s := ratios(r.runs(ours), theirs, figure)
	return verdict{wanted, fmt.Sprintf("%s (%s – %s)", two(s.median), two(s.least), two(s.most)), s.median <= limit}
}

// atLeast is a verdict on how many times as fast as another program.
func (r result) atLeast(limit float64, wanted, than string) verdict {
	theirs := r.runs(than)
	s := ratios(theirs, r.runs(ours), wall)
	return verdict{wanted, fmt.Sprintf("%s (%s – %s)", two(s.median), two(s.least), two(s.most)), s.median >= limit}
}

// limit is a verdict on a figure as a part of so many bytes.
func (r result) limit(most float64, wanted string, of int64, figure func(figures) float64) verdict {
	worst := 0.0
	for _, f := range r.runs(ours) {
		worst = max(worst, figure(f)/float64(of))
	}
	return verdict{wanted, fmt.Sprintf("%.4f at most", worst), worst <= most}
}

// two writes a number with as many digits as say something.
func two(x float64) string {
	switch {
	case x >= 99.5:
		return fmt.Sprintf("%.0f", x)
	case x >= 9.95:
		return fmt.Sprintf("%.1f", x)
	case x < 0.095:
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
