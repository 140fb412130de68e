package jsonstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
)

func read(s string) *jsonstream.Reader { return jsonstream.New(strings.NewReader(s)) }

// all skips one value and wants the end behind it.
func all(r *jsonstream.Reader) error {
	if err := r.Skip(); err != nil {
		return err
	}
	return r.End()
}

func TestSkip(t *testing.T) {
	for _, good := range []string{
		`{}`, `[]`, ` [1, -2.5e3, true, false, null, "a\u00e9\"", {"a": {"b": []}}] `, `"x"`, `{"a":1,"a":2}`,
		strings.Repeat("[", 60) + strings.Repeat("]", 60),
	} {
		if err := all(read(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		``:                                 "EOF",
		`{"a"}`:                            `want ':'`,
		`{"a":1,}`:                         `want '"'`,
		`{1:2}`:                            `want '"'`,
		`[1 2]`:                            `want ','`,
		`[1,]`:                             "want a JSON value",
		`nul`:                              "want a JSON value",
		`01`:                               "want a JSON value",
		`NaN`:                              "want a JSON value",
		`[] []`:                            "want the end",
		`"\x"`:                             "wrong escape",
		"\"\xff\"":                         "not UTF-8",
		"\"\n\"":                           "control character",
		`"`:                                "EOF",
		`"\`:                               "EOF",
		strings.Repeat("[", 1_000_000):     "nested deeper",
		strings.Repeat("1", 100):           "too long",
		strings.Repeat(`{"a":`, 1_000_000): "nested deeper",
	} {
		if err := all(read(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", bad, err, want)
		}
	}
}

func TestPythonNumbers(t *testing.T) {
	const doc = `[NaN, Infinity, -Infinity]`
	r := read(doc)
	r.Python = true
	if err := all(r); err != nil {
		t.Error(err)
	}
	r = read(`[Inf]`)
	r.Python = true
	if err := all(r); err == nil {
		t.Error("Inf is accepted")
	}
}

func TestObject(t *testing.T) {
	long := strings.Repeat("x", 300)
	many := `{"` + long + `":0`
	for i := range 40 {
		many += `,"` + strings.Repeat("k", i) + `":0`
	}
	for doc, want := range map[string]string{
		`{"a":1,"b":2}`:             "",
		many + `}`:                  "",
		`{"a":1,"a":2}`:             `"a" occurs twice`,
		`{"a":1,"\u0061":2}`:        `"a" occurs twice`,
		many + `,"kkk":0}`:          `"kkk" occurs twice`,
		many + `,"` + long + `":0}`: "xxx…",
		`[]`:                        "want '{'",
		`{"\ud800":1}`:              "wrong escape",
	} {
		r := read(doc)
		err := r.Object(func(string) error { return r.Skip() })
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"…`, "…"), want)) {
			t.Errorf("%.60s: got %v, want %q", doc, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	r := read(`["é\n", 7, true, null, [0, 9223372036854775807], 3]`)
	var got []any
	var naturals []int64
	step := 0
	err := r.Array(func() error {
		step++
		var v any
		var err error
		switch step {
		case 1:
			v, err = r.String()
		case 2:
			v, err = r.Natural()
		case 3:
			v, err = r.Bool()
		case 4:
			v, err = r.Null()
		case 5:
			naturals, err = r.Naturals(2)
		case 6:
			if v, err = r.Null(); v != false {
				t.Errorf("3 is null")
			}
			if err == nil {
				err = r.Skip()
			}
		}
		got = append(got, v)
		return err
	})
	if err != nil || r.End() != nil {
		t.Fatal(err)
	}
	if got[0] != "é\n" || got[1] != int64(7) || got[2] != true || got[3] != true || naturals[1] != 1<<63-1 {
		t.Errorf("got %v and %v", got, naturals)
	}
	for _, n := range []string{"0", "-1", "2.5e-3"} {
		if got, err := read(n + " ").Number(); got != n || err != nil {
			t.Errorf("%s: got %s, %v", n, got, err)
		}
	}
	for doc, f := range map[string]func(*jsonstream.Reader) error{
		`-1`:                  func(r *jsonstream.Reader) error { _, err := r.Natural(); return err },
		`1.0`:                 func(r *jsonstream.Reader) error { _, err := r.Natural(); return err },
		`9223372036854775808`: func(r *jsonstream.Reader) error { _, err := r.Natural(); return err },
		`null`:                func(r *jsonstream.Reader) error { _, err := r.Number(); return err },
		`-`:                   func(r *jsonstream.Reader) error { _, err := r.Number(); return err },
		`"7"`:                 func(r *jsonstream.Reader) error { _, err := r.Number(); return err },
		`yes`:                 func(r *jsonstream.Reader) error { _, err := r.Bool(); return err },
		`nil`:                 func(r *jsonstream.Reader) error { _, err := r.Null(); return err },
		`[1,2,3]`:             func(r *jsonstream.Reader) error { _, err := r.Naturals(2); return err },
	} {
		if f(read(doc)) == nil {
			t.Errorf("%s is accepted", doc)
		}
	}
}

// TestLongString: a stranger's string costs a bounded amount of memory.
func TestLongString(t *testing.T) {
	endless := func() io.Reader {
		return io.MultiReader(strings.NewReader(`"`), io.LimitReader(letters{}, jsonstream.MaxString+1))
	}
	if _, err := jsonstream.New(endless()).String(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v", err)
	}
	if err := jsonstream.New(endless()).Skip(); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v", err)
	}
}

// TestManyKeys: a stranger's object costs a bounded amount of memory, however
// objects are nested.
func TestManyKeys(t *testing.T) {
	key := func(i, n int) string { return fmt.Sprintf(`"%s%d":`, strings.Repeat("k", n), i) }
	var flat strings.Builder
	for i := range 40 {
		flat.WriteString(key(i, 1<<20) + `0,`)
	}
	r := read(`{` + flat.String() + `"end":0}`)
	if err := r.Object(func(string) error { return r.Skip() }); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("40 keys of 1 MiB: got %v", err)
	}
	r = read(`{` + key(1, 3<<20) + `{` + key(2, 3<<20) + `0},` + key(3, 3<<20) + `{` + key(4, 3<<20) + `0}}`)
	nested := func() error {
		return r.Object(func(string) error { return r.Object(func(string) error { return r.Skip() }) })
	}
	if err := nested(); err != nil {
		t.Errorf("three keys of 3 MiB at a time: got %v", err)
	}
	deep := strings.Repeat(`{`+key(1, 8<<20), 5) + `{}`
	r = read(deep)
	var into func(string) error
	into = func(string) error { return r.Object(into) }
	if err := into(""); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("five nested keys of 8 MiB: got %v", err)
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestSourceError(t *testing.T) {
	broken := errors.New("connection reset")
	r := jsonstream.New(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(broken)))
	if err := all(r); !errors.Is(err, broken) || !errors.Is(r.SourceError(), broken) {
		t.Errorf("got %v and %v", err, r.SourceError())
	}
	r = read(`{"a":`)
	if err := all(r); err == nil || r.SourceError() != nil {
		t.Errorf("got %v and %v", err, r.SourceError())
	}
}

// FuzzSkip: what is accepted is JSON to encoding/json too, but for depth.
func FuzzSkip(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e-3,"\u00e9",true,null]}`))
	f.Add([]byte(`[[[]]]`))
	f.Add([]byte(`"\ud83d\ude00"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := jsonstream.New(bytes.NewReader(b))
		if err := all(r); err == nil && !json.Valid(b) {
			t.Fatalf("accepted %q, which is no JSON", b)
		}
		if r.SourceError() != nil {
			t.Fatal(r.SourceError())
		}
	})
}
