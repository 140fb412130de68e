package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../.."

// Every case of the list names a package that is there, and a test in it.
func TestListOfCases(t *testing.T) {
	cases, err := readCases(filepath.Join(root, "docs", "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 200 {
		t.Errorf("got %d cases, want 200 and more", len(cases))
	}
	source := map[string]string{}
	for _, c := range cases {
		if _, ok := source[c.pkg]; !ok {
			source[c.pkg] = testSource(t, c.pkg)
		}
		top, _, _ := strings.Cut(c.test, "/")
		if !strings.Contains(source[c.pkg], "\nfunc "+top+"(") {
			t.Errorf("%s: %s has no test %s", c.id, c.pkg, top)
		}
		if !regexp.MustCompile(`^[A-H][0-9]+[a-z]?$`).MatchString(c.id) {
			t.Errorf("%s: want a letter of a group and a number", c.id)
		}
	}
}

// testSource returns all tests of a package.
func testSource(t *testing.T, pkg string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("\n")
		all.Write(b)
	}
	return all.String()
}

func TestJudge(t *testing.T) {
	res := &results{outcomes: map[string]map[string]string{"p": {"TestA": "pass", "TestB/x": "fail", "TestC": "skip"}}}
	for _, c := range []struct {
		name    string
		cases   []hostileCase
		want    string
		wantErr bool
	}{
		{"all hold", []hostileCase{{id: "A1", pkg: "p", test: "TestA"}}, "hostile cases: 1 passed, 0 failed, 0 not checked\n", false},
		{
			"one fails",
			[]hostileCase{{id: "A1", pkg: "p", test: "TestA"}, {id: "A2", what: "w", pkg: "p", test: "TestB/x"}},
			"case A2, w: p TestB/x: fail\nhostile cases: 1 passed, 1 failed, 0 not checked\n", true,
		},
		{"skipped", []hostileCase{{id: "A3", what: "w", pkg: "p", test: "TestC"}}, "case A3, w: p TestC: not checked\nhostile cases: 0 passed, 0 failed, 1 not checked\n", false},
		{"part of a test that was skipped", []hostileCase{{id: "A3", what: "w", pkg: "p", test: "TestC/x"}}, "case A3, w: p TestC/x: not checked\nhostile cases: 0 passed, 0 failed, 1 not checked\n", false},
		{"gone", []hostileCase{{id: "A4", what: "w", pkg: "p", test: "TestB"}}, "case A4, w: p TestB: was not run\nhostile cases: 0 passed, 1 failed, 0 not checked\n", true},
		{"of another run", []hostileCase{{id: "A5", pkg: "q", test: "TestA"}}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := judge(&out, c.cases, res)
			if out.String() != c.want || (err != nil) != c.wantErr {
				t.Errorf("got %q and %v, want %q", out.String(), err, c.want)
			}
		})
	}
}

// Of two runs of one test that tells which ran it, and a failure stays.
func TestATestThatWasRunTwice(t *testing.T) {
	for _, c := range []struct{ first, second, want, printed string }{
		{"pass", "skip", "pass", ""},
		{"pass", "fail", "fail", ""},
		{"fail", "pass", "fail", ""},
		{"skip", "pass", "pass", "left out\n"},
		{"skip", "skip", "skip", "left out\n"},
	} {
		var out bytes.Buffer
		res := newResults(&out)
		for _, outcome := range []string{c.first, c.second} {
			res.take(event{Action: "output", Package: "p", Test: "TestA", Output: "left out\n"})
			res.take(event{Action: outcome, Package: "p", Test: "TestA"})
		}
		if got := res.outcomes["p"]["TestA"]; got != c.want || out.String() != c.printed {
			t.Errorf("%s, then %s: got %s and %q, want %s and %q", c.first, c.second, got, out.String(), c.want, c.printed)
		}
	}
}

func TestListsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"A1 refuse p TestA # x\nA1 warn p TestB # y\n": ":2: A1 is there already",
		"A1 maybe p TestA # x\n":                       `got "maybe"`,
		"A1 refuse TestA # x\n":                        "got 3 fields",
		"A1 refuse p TestA\n":                          "want id",
	} {
		name := filepath.Join(t.TempDir(), "cases.txt")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readCases(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
