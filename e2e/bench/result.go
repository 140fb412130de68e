package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
)

// figures are what one run of one program took, by name: those that measure
// prints, and those of the registry's sockets. Times are in seconds, sizes in
// bytes.
type figures map[string]float64

// ours is the name of the program that the benchmark is about. Where a case lets
// programs do several things, what they do is behind their names.
const ours = "carton-oci"

// result is what one case gave.
type result struct {
	title    string
	programs []measured
	verdicts []string
	trips    bool // round trips are shown: they say little of long transfers
}

// measured are the runs of one program.
type measured struct {
	name string
	runs []figures
}

// of returns a figure's spread over the runs.
func (m measured) of(figure string) spread {
	var values []float64
	for _, f := range m.runs {
		values = append(values, f[figure])
	}
	return spreadOf(values)
}

// to returns the spread of a figure's ratio to another program's, round by round.
func (m measured) to(other measured, figure string) spread {
	var values []float64
	for i := range min(len(m.runs), len(other.runs)) {
		values = append(values, m.runs[i][figure]/other.runs[i][figure])
	}
	return spreadOf(values)
}

// spread is a figure that was measured several times.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	n := len(values)
	if n == 0 {
		return spread{}
	}
	slices.Sort(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

func (s spread) String() string {
	return fmt.Sprintf("%.3g (%.3g – %.3g)", s.median, s.least, s.most)
}

// program returns what was measured of one; it has no runs where it did not run.
func (r *result) program(name string) measured {
	i := slices.IndexFunc(r.programs, func(m measured) bool { return m.name == name })
	if i < 0 {
		return measured{name: name}
	}
	return r.programs[i]
}

// mine returns what was measured of the command doing what another program did.
func (r *result) mine(name string) measured {
	_, what, _ := strings.Cut(name, " ")
	return r.program(strings.TrimSpace(ours + " " + what))
}

// want adds a verdict: what was wanted, and what was got.
func (r *result) want(ok bool, wanted, got string) {
	mark := "✗"
	if ok {
		mark = "✓"
	}
	r.verdicts = append(r.verdicts, fmt.Sprintf("%s %s: %s", mark, wanted, got))
}

// atMost wants a limit to the ratio of the command to another program.
func (r *result) atMost(limit float64, wanted, than, figure string) {
	theirs := r.program(than)
	if theirs.runs == nil {
		r.want(false, wanted, than+" is not installed")
		return
	}
	s := r.mine(than).to(theirs, figure)
	r.want(s.median <= limit, wanted, s.String())
}

// part wants a limit to a program's figure as a part of so many bytes, in every
// run.
func (r *result) part(limit float64, wanted, name string, of int64, figure string) {
	worst := r.program(name).of(figure).most / float64(of)
	r.want(worst <= limit, wanted, fmt.Sprintf("%.4f at most", worst))
}

// columns are those of a table, after the program's name and its wall time.
var columns = []struct {
	figure string
	show   func(spread) string
}{
	{"round trips", func(s spread) string { return fmt.Sprintf("%.0f", s.median) }},
	{"CPU", func(s spread) string { return seconds(s.median) }},
	{"peak", func(s spread) string { return fmt.Sprintf("%.0f MiB", s.most/(1<<20)) }},
	{"sent", bytesText},
	{"received", bytesText},
	{"written", bytesText},
	{"in fsync", func(s spread) string { return seconds(s.median) }},
	{"fsync after", func(s spread) string { return seconds(s.median) }},
}

// String returns the result as Markdown.
func (r result) String() string {
	heads, line, rows := "| program | wall | carton-oci to it |", "|---|--:|--:|", make([]string, len(r.programs))
	for i, m := range r.programs {
		wall, ratio := m.of("wall"), ""
		if mine := r.mine(m.name); mine.runs != nil && mine.name != m.name {
			ratio = fmt.Sprintf("**%s**<br>CPU %s", mine.to(m, "wall"), mine.to(m, "CPU"))
		}
		rows[i] = fmt.Sprintf("| %s | %s<br>%s – %s | %s |", m.name, seconds(wall.median), seconds(wall.least),
			seconds(wall.most), ratio)
	}
	for _, c := range columns {
		has := func(m measured) bool { return m.of(c.figure).median > 0.0005 }
		if !slices.ContainsFunc(r.programs, has) || c.figure == "round trips" && !r.trips {
			continue
		}
		heads, line = heads+" "+c.figure+" |", line+"--:|"
		for i, m := range r.programs {
			rows[i] += " " + c.show(m.of(c.figure)) + " |"
		}
	}
	text := fmt.Sprintf("### %s\n\nRounds: %d. %s.\n\n%s\n%s\n%s\n", r.title, len(r.programs[0].runs),
		time.Now().Format(time.DateOnly), heads, line, strings.Join(rows, "\n"))
	for _, v := range r.verdicts {
		text += "\n- " + v
	}
	return text + "\n"
}

// seconds writes a duration.
func seconds(x float64) string {
	if x < 0.9995 {
		return fmt.Sprintf("%.0f ms", x*1e3)
	}
	return fmt.Sprintf("%.3g s", x)
}

func bytesText(s spread) string { return errtext.Size(int64(s.median)) }
