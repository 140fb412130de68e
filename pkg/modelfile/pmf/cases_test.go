package pmf_test

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/modelfile/pmf"
	"github.com/rogpeppe/go-internal/txtar"
)

// brokenTree is a file of testdata: a tree, in which a name that ends in "/" is
// an empty folder, and what is wrong with it.
type brokenTree struct {
	fsys fstest.MapFS
	rule pmf.Rule   // that is broken
	at   string     // the Path of its violation
	also []pmf.Rule // broken with it
}

// readCases reads the trees of one folder of testdata. The lines before a
// tree's first file say what it is: "rule: ID", "at: PATH" and, where one fault
// breaks several rules, "also: ID".
func readCases(t testing.TB, dir string) map[string]brokenTree {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("got %d cases, %v", len(names), err)
	}
	cases := map[string]brokenTree{}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c := brokenTree{fsys: treeOf(archive)}
		for line := range strings.Lines(string(archive.Comment)) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "rule":
				c.rule = pmf.Rule(text)
			case "at":
				c.at = text
			case "also":
				c.also = append(c.also, pmf.Rule(text))
			}
		}
		cases[strings.TrimSuffix(filepath.Base(name), ".txtar")] = c
	}
	return cases
}

func treeOf(archive *txtar.Archive) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, f := range archive.Files {
		if dir, ok := strings.CutSuffix(f.Name, "/"); ok {
			fsys[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
			continue
		}
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return fsys
}

// check wants the violation of the case among those found, and no other rules
// broken than it names.
func (c brokenTree) check(t *testing.T, found []pmf.Violation) {
	t.Helper()
	if !slices.ContainsFunc(found, func(v pmf.Violation) bool { return v.Rule == c.rule && v.Path == c.at }) {
		t.Errorf("got %v, want %s at %s", found, c.rule, c.at)
	}
	for _, v := range found {
		if v.Rule != c.rule && !slices.Contains(c.also, v.Rule) {
			t.Errorf("%v: want no other rule broken", v)
		}
		if strings.Contains(v.Path, ": ") && v.Line == 0 {
			t.Errorf("%v: has no line", v)
		}
	}
}

// verify reads every file that has a recorded MD5, and compares.
func verify(m *pmf.Model, fsys fs.FS) error {
	invalid := &pmf.Invalid{}
	for _, s := range m.Sums() {
		content, err := fs.ReadFile(fsys, s.Path)
		if err != nil {
			return err
		}
		sum := md5.Sum(content)
		if v := s.Check(hex.EncodeToString(sum[:])); v != nil {
			invalid.Violations = append(invalid.Violations, *v)
		}
	}
	if len(invalid.Violations) > 0 {
		return invalid
	}
	return nil
}

// violations returns what Read, and then verify, say is wrong.
func violations(t *testing.T, fsys fs.FS, opts pmf.Options) []pmf.Violation {
	t.Helper()
	m, err := pmf.Read(fsys, opts)
	if err == nil {
		err = verify(m, fsys)
	}
	var invalid *pmf.Invalid
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &invalid) || !errors.Is(err, pmf.ErrInvalid):
		t.Fatalf("got %v, want an Invalid", err)
	}
	for _, v := range invalid.Violations {
		if !strings.Contains(err.Error(), v.String()) {
			t.Errorf("got the error %q, want %q in it", err, v)
		}
	}
	return invalid.Violations
}

func TestBrokenTreesAreRefusedByRule(t *testing.T) {
	for name, c := range readCases(t, "refused") {
		t.Run(name, func(t *testing.T) {
			c.check(t, violations(t, c.fsys, pmf.Options{}))
		})
	}
}

func TestOddTreesWarnAndStrictRefusesThem(t *testing.T) {
	for name, c := range readCases(t, "warned") {
		t.Run(name, func(t *testing.T) {
			m, err := pmf.Read(c.fsys, pmf.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, m.Warnings)
			if err := verify(m, c.fsys); err != nil {
				t.Error(err)
			}
			c.check(t, violations(t, c.fsys, pmf.Options{Strict: true}))
		})
	}
}

func TestEveryRuleHasACase(t *testing.T) {
	// Those that no text file can hold have a test of their own.
	seen := map[pmf.Rule]bool{pmf.RuleSize: true, pmf.RuleNesting: true, pmf.RuleSpecial: true}
	for _, dir := range []string{"refused", "warned"} {
		for _, c := range readCases(t, dir) {
			seen[c.rule] = true
			if pmf.Rules[c.rule] == "" {
				t.Errorf("%s is no rule", c.rule)
			}
		}
	}
	for rule := range pmf.Rules {
		if !seen[rule] {
			t.Errorf("%s: %s: has no case", rule, pmf.Rules[rule])
		}
	}
}
