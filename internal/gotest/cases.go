package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// hostileCase is one line of the list of cases: something hostile or broken that
// must be refused, survived or warned of, and the test that sees to it.
type hostileCase struct {
	id     string // such as "A1"
	expect string // "refuse", "survive" or "warn"
	pkg    string // the package's folder in the repository
	test   string // as go test prints it, subtests behind a slash
	what   string
}

// readCases reads a list of cases: a line each of id, what is expected, package
// and test, and behind a # what the case is. Blank lines and those that begin with
// # are left out.
func readCases(name string) ([]hostileCase, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cases []hostileCase
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, what, _ := strings.Cut(lines.Text(), " # ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) != 4 || what == "" {
			return nil, fmt.Errorf("%s:%d: got %d fields, want id, expectation, package, test, # what it is", name, n, len(fields))
		}
		c := hostileCase{id: fields[0], expect: fields[1], pkg: fields[2], test: fields[3], what: strings.TrimSpace(what)}
		switch c.expect {
		case "refuse", "survive", "warn":
		default:
			return nil, fmt.Errorf("%s:%d: got %q, want refuse, survive or warn", name, n, c.expect)
		}
		if seen[c.id] {
			return nil, fmt.Errorf("%s:%d: %s is there already", name, n, c.id)
		}
		seen[c.id] = true
		cases = append(cases, c)
	}
	return cases, lines.Err()
}

// judge says how many of the cases hold whose packages were tested, and names
// those that don't. It returns an error where there is one. A test that was
// skipped has said why ("NOT CHECKED:"): its case is counted apart.
func judge(w io.Writer, cases []hostileCase, res *results) error {
	held, failed, skipped := 0, 0, 0
	for _, c := range cases {
		outcome, ran := res.outcomes[c.pkg]
		if !ran {
			continue
		}
		got := outcome[c.test]
		switch top, _, _ := strings.Cut(c.test, "/"); {
		case got == "pass":
			held++
			continue
		case got == "skip" || got == "" && outcome[top] == "skip":
			skipped++
			got = "not checked"
		case got == "":
			failed++
			got = "was not run"
		default:
			failed++
		}
		fmt.Fprintf(w, "case %s, %s: %s %s: %s\n", c.id, c.what, c.pkg, c.test, got)
	}
	if held+failed+skipped == 0 {
		return nil
	}
	fmt.Fprintf(w, "hostile cases: %d passed, %d failed, %d not checked\n", held, failed, skipped)
	if failed > 0 {
		return fmt.Errorf("%d of %d hostile cases don't hold", failed, held+failed+skipped)
	}
	return nil
}
