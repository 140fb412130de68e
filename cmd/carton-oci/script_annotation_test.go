package main

import (
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carton-oci/carton-oci/pkg/layout"
)

// scriptAnnotation wants an annotation of an image manifest to match a pattern.
func scriptAnnotation(ts *testscript.TestScript, _ bool, args []string) {
	i := strings.LastIndexByte(args[0], ':')
	dir, err := layout.OpenDir(ts.MkAbs(args[0][:i]))
	ts.Check(err)
	ctx := state(ts).tb.Context()
	desc, err := dir.Resolve(ctx, args[0][i+1:])
	ts.Check(err)
	_, m, err := layout.ReadManifest(ctx, dir, desc)
	ts.Check(err)
	if got := m.Annotations[args[1]]; !regexp.MustCompile(args[2]).MatchString(got) {
		ts.Fatalf("%s: got %q, want %s", args[1], got, args[2])
	}
}
