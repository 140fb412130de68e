package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/pkg/hint"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                 "plain",
		"größe 模型 …":            "größe 模型 …",
		"a\nb\n":                "a; b",
		"a\x1b[2Jb":             `a\x1b[2Jb`,
		"bad\xffbyte":           `bad\xffbyte`,
		"replacement \uFFFD":    "replacement \uFFFD",
		"turn\u202eround":       `turn\u202eround`,
		"tab\there":             `tab\there`,
		"carriage\rreturn":      `carriage\rreturn`,
		"line\u2028separator":   `line\u2028separator`,
		"quote ' and \" and \\": "quote ' and \" and \\",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestErrorsAreOneLineAndHints(t *testing.T) {
	err := withHint(errors.Join(errors.New("first"), errors.New("second\x07")), "do this")
	err = withHint(fmt.Errorf("pull h/m:1: %w", err), "or that")
	var b bytes.Buffer
	(&printer{err: &b, quiet: true}).error(err)
	want := "carton-oci: pull h/m:1: first; second\\a\nhint: or that\nhint: do this\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestQuietSilencesNotesOnly(t *testing.T) {
	var out, errs bytes.Buffer
	p := &printer{out: &out, err: &errs, quiet: true}
	p.notef("a note")
	p.warnf("a warning")
	p.linef("a result")
	if got, want := errs.String(), "warning: a warning\n"; got != want {
		t.Errorf("standard error: got %q, want %q", got, want)
	}
	if got, want := out.String(), "a result\n"; got != want {
		t.Errorf("standard output: got %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	(&printer{out: &out}).table([][]string{{"PATH", "SIZE"}, {"a\tb", "1 B"}, {"longer/name", ""}})
	want := "PATH         SIZE\na\\tb          1 B\nlonger/name\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A name of thousands of characters has a row of its own width, and does not pad
// the others; a name with a line end in it is one line.
func TestLongAndBrokenNamesInATable(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out}
	p.table([][]string{{"NAME", "TYPE"}, {"a\nb", "F32"}, {strings.Repeat("x", 5000), "F32"}})
	p.linef("%s", "a\nb")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || len(lines[1]) != cellMost+5 || !strings.HasPrefix(lines[1], `a\nb `) || lines[3] != `a\nb` {
		t.Errorf("got %q", lines)
	}
}

func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		columns      int
		widths, want []int
	}{
		{80, []int{10, 10}, []int{10, 10}},
		{40, []int{100, 10, 9}, []int{17, 10, 9}},
		{40, []int{100, 60}, []int{19, 19}},
		{10, []int{100, 60}, []int{8, 8}},
	} {
		if narrow(c.widths, c.columns); !slices.Equal(c.widths, c.want) {
			t.Errorf("%d columns: got %v, want %v", c.columns, c.widths, c.want)
		}
	}
}

func TestJSONKeepsCharacters(t *testing.T) {
	var out bytes.Buffer
	(&printer{out: &out}).object(map[string]string{"a": "<&>ü"})
	if got, want := out.String(), "{\n  \"a\": \"<&>ü\"\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestResultThatCannotBeWrittenIsAnError(t *testing.T) {
	p := &printer{out: fullDisk{}}
	p.linef("digest")
	p.linef("more")
	if p.failed == nil {
		t.Error("got no error, want the disk's")
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1kB": 1000, "1KB": 1000, "64KiB": 64 << 10, "64kib": 64 << 10, "16 MiB": 16 << 20, "1GB": 1e9, "8GiB": 8 << 30, "7B": 7, "1M": 1 << 20, "16k": 16 << 10, "2G": 2 << 30,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "B", "1.5MB", "1TBB", "9223372036854775807kB", "18446744073709551615", "1 2", strings.Repeat("9", 40)} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

// TestNothingActsOnATerminal: what strangers wrote is printed so that a terminal
// shows it and does nothing; JSON keeps its meaning.
func TestNothingActsOnATerminal(t *testing.T) {
	const hostile = "a\u202eb\u2066c\u200bd\u0085e\u009b2Jf\x1b]0;g\x07h\U000e0001\u00adi\x7f"
	type nested struct {
		Key map[string]string `json:"key"`
	}
	var out, errs bytes.Buffer
	p := &printer{out: &out, err: &errs}
	p.object(map[string]any{hostile: []any{nested{map[string]string{hostile: hostile}}}})
	var back map[string][]nested
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[hostile][0].Key[hostile] != hostile {
		t.Errorf("the JSON means something else: %v, %q", err, back)
	}
	p.linef("%s", hostile)
	p.table([][]string{{"NAME"}, {hostile}})
	p.error(hint.With(errors.New(hostile), "do %s", hostile))
	p.warnf("%s", hostile)
	p.notef("%s", hostile)
	p.sayf("error: ", "%s", hostile)
	(&trace{w: &errs}).linef("%s", hostile)
	for _, r := range out.String() + errs.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U is printed as it is", r)
		}
	}
}
