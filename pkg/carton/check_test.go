package carton_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/rogpeppe/go-internal/txtar"
)

// Each file of testdata/check is an unpacked carton without its MANIFEST. The
// lines before the first file are what Check finds, all of it: "error: " or
// "warning: " and a part of the text. "verify error: " is what Verify alone
// finds.
func TestCheck(t *testing.T) {
	cases, err := filepath.Glob("testdata/check/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("got %d cases, %v", len(cases), err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			src, wantCheck, wantVerify := checkCase(t, name)
			found, err := carton.Check(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			sameFindings(t, "Check", found, wantCheck)
			report, err := carton.Verify(t.Context(), src, carton.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sameFindings(t, "Verify", report.Findings, append(wantCheck, wantVerify...))
			if report.OK() == strings.Contains(strings.Join(append(wantCheck, wantVerify...), "\n"), "error: ") {
				t.Errorf("Verify: got OK %t", report.OK())
			}
			if checkParsers(t, src, wantCheck); len(found) > 0 {
				checkSeverities(t, src, found)
			}
		})
	}
}

func checkCase(t *testing.T, name string) (src carton.Source, wantCheck, wantVerify []string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, f := range archive.Files {
		pairs = append(pairs, f.Name, string(f.Data))
	}
	// A case that is not about it has something in model/.
	if !strings.Contains(string(archive.Comment), "model/: holds no file") && !strings.Contains(strings.Join(pairs, "\n"), "model/") {
		pairs = append(pairs, "model/m", "")
	}
	if src, err = carton.OpenFS(folderOf(pairs...)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(archive.Comment)) {
		line = strings.TrimSpace(line)
		if verify, ok := strings.CutPrefix(line, "verify "); ok {
			wantVerify = append(wantVerify, verify)
		} else if !strings.HasPrefix(line, "#") {
			wantCheck = append(wantCheck, line)
		}
	}
	return src, wantCheck, wantVerify
}

func sameFindings(t *testing.T, what string, found []carton.Finding, want []string) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, f.Severity.String()+": "+f.Err.Error())
	}
	if len(got) != len(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		return
	}
	for i := range want {
		severity, text, _ := strings.Cut(want[i], ": ")
		if !strings.HasPrefix(got[i], severity+": ") || !strings.Contains(got[i], text) {
			t.Errorf("%s: got %q, want %q", what, got[i], want[i])
		}
		if e := found[i].Err; e.Kind == nil || found[i].Path == "" {
			t.Errorf("%s: %q has no kind or path", what, got[i])
		}
	}
}

// checkParsers wants ReadInfo and ParseTensorIndex to fail with the first error
// that is found in their file.
func checkParsers(t *testing.T, src carton.Source, want []string) {
	t.Helper()
	_, infoErr := carton.ReadInfo(t.Context(), src)
	_, indexErr := tensorIndex(t, src)
	for _, err := range []error{infoErr, indexErr} {
		if err != nil && !strings.Contains(strings.Join(want, "\n"), "error: ") {
			t.Errorf("got %v, and Check finds no error", err)
		}
	}
	if len(want) > 0 && strings.Contains(want[0], "the format's loader fails") {
		return
	}
	if len(want) > 0 && strings.HasPrefix(want[0], "error: carton.toml: ") && infoErr == nil {
		t.Errorf("ReadInfo accepts it; want %q", want[0])
	}
	_, listed := src.Manifest().Lookup(carton.IndexName)
	if listed && len(want) > 0 && strings.HasPrefix(want[0], "error: tensor_data/index.toml: ") && indexErr == nil {
		t.Errorf("ParseTensorIndex accepts it; want %q", want[0])
	}
}

// tensorIndex reads and parses a carton's index of tensors; one that lists none
// has an empty index.
func tensorIndex(t *testing.T, src carton.Source) (*carton.TensorIndex, error) {
	t.Helper()
	if _, ok := src.Manifest().Lookup(carton.IndexName); !ok {
		return carton.ParseTensorIndex([]byte(emptyIndex))
	}
	b, err := carton.ReadMember(t.Context(), src, carton.IndexName, carton.MaxIndexBytes)
	if err != nil {
		return nil, err
	}
	return carton.ParseTensorIndex(b)
}

// checkSeverities wants what the format's loader fails on to be told from what
// breaks the format: a carton of the one kind can still be read.
func checkSeverities(t *testing.T, src carton.Source, found []carton.Finding) {
	t.Helper()
	_, infoErr := carton.ReadInfo(t.Context(), src)
	_, indexErr := tensorIndex(t, src)
	broken := false
	for _, f := range found {
		broken = broken || f.Severity == carton.SeverityError
		if got := strings.Contains(f.Err.Error(), "the format's loader fails"); got != (f.Severity == carton.SeverityLoader) {
			t.Errorf("%v: got the severity %d", f.Err, f.Severity)
		}
	}
	if !broken && (infoErr != nil || indexErr != nil) {
		t.Errorf("nothing breaks the format: got %v, %v", infoErr, indexErr)
	}
}

// Kinds are what exit codes are made of.
func TestKindsOfFindings(t *testing.T) {
	for name, c := range map[string]struct {
		toml string
		want error
		text string
	}{
		"version 2":       {"spec_version = 2\n", carton.ErrVersion, "is 2"},
		"a path":          {minimalInfo + "[[example]]\ninputs = { x = \"@misc/..\" }\n", carton.ErrInsecurePath, "not clean"},
		"nesting":         {"a = " + strings.Repeat("[", 10_000), carton.ErrLimit, "nested"},
		"many items":      {"a = [" + strings.Repeat("0,", carton.MaxTOMLItems) + "]", carton.ErrLimit, "keys, values"},
		"over 16 MiB":     {"# " + strings.Repeat("x", carton.MaxInfoBytes), carton.ErrLimit, "16777216"},
		"not UTF-8":       {"spec_version = 1 # \xff\n", carton.ErrFormat, "not UTF-8"},
		"control in text": {"spec_version = 1\nlicense = \"a\x1b[31m\"\n", carton.ErrFormat, "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := carton.ParseInfo([]byte(c.toml))
			checkError(t, err, c.want, c.text)
		})
	}
}

// Names from outside can't move a terminal's cursor.
func TestFindingsArePrintable(t *testing.T) {
	toml := minimalInfo + "[[input]]\nname = \"\\u001b[31m\"\ndtype = \"\\u001b[31m\"\nshape = [-1]\n" +
		"[[self_test]]\ninputs = { \"\\u001b\" = \"@tensor_data/\\u001b\", \"\\n\" = \"\\r\" }\n" +
		"[runner.opts]\n\"\\u001b\" = []\n"
	src, err := carton.OpenFS(folderOf(carton.InfoName, toml))
	if err != nil {
		t.Fatal(err)
	}
	found, err := carton.Check(t.Context(), src)
	if err != nil || len(found) < 5 {
		t.Fatalf("got %d findings, %v; want at least 5", len(found), err)
	}
	for _, f := range found {
		if strings.ContainsAny(f.Err.Error(), "\x1b\n\r") {
			t.Errorf("%q holds a control character", f.Err)
		}
	}
}

// Check reads no member but the two that describe the others.
func TestCheckReadsNoContent(t *testing.T) {
	dir := unpacked(t, folderOf(carton.InfoName, minimalInfo, "model/a", "weights",
		"tensor_data/index.toml", "[[tensor]]\nname = \"s\"\ndtype = \"string\"\nshape = []\nfile = \"s.toml\"\ninner = []\n",
		"tensor_data/s.toml", "data = [\"a\"]\n"))
	for _, name := range []string{"model/a", "tensor_data/s.toml"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b[0]++ // what reads it, fails
		writeFile(t, dir, name, string(b))
	}
	src, err := carton.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	found, err := carton.Check(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Check", found, nil)
}

func TestCheckOfWrongContent(t *testing.T) {
	files := folderOf(carton.InfoName, minimalInfo, carton.IndexName, "tensor = []\n", "model/m", "")
	files[carton.InfoName] = &fstest.MapFile{Data: []byte(strings.ToUpper(minimalInfo))}
	files[carton.IndexName] = &fstest.MapFile{Data: []byte("tensor = [ ]\n")}
	src, err := carton.OpenFS(files)
	if err != nil {
		t.Fatal(err)
	}
	found, err := carton.Check(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	sameFindings(t, "Check", found, []string{"error: carton.toml: got sha256", "error: tensor_data/index.toml: got sha256"})
}
