package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// quietFor is how long nothing is printed before what is running is.
const quietFor = 20 * time.Second

// running knows which packages are being tested.
type running struct {
	began map[string]time.Time            // by package
	tests map[string]map[string]time.Time // by package and test, top-level ones
}

func newRunning() *running {
	return &running{began: map[string]time.Time{}, tests: map[string]map[string]time.Time{}}
}

func (r *running) take(e event, now time.Time) {
	switch {
	case e.Package == "" || strings.Contains(e.Test, "/"):
	case e.Action == "start":
		r.began[e.Package], r.tests[e.Package] = now, map[string]time.Time{}
	case e.Action == "run" && r.tests[e.Package] != nil:
		r.tests[e.Package][e.Test] = now
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
	case e.Test == "":
		delete(r.began, e.Package)
		delete(r.tests, e.Package)
	default:
		delete(r.tests[e.Package], e.Test)
	}
}

// String names every package that is being tested, how long it has been, and the
// test in it that has run longest.
func (r *running) String(now time.Time) string {
	if len(r.began) == 0 {
		return "… compiling\n"
	}
	var b strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(r.began)) {
		fmt.Fprintf(&b, "… %s for %.0f s", cmp.Or(strings.TrimPrefix(pkg, modulePath+"/"), pkg), now.Sub(r.began[pkg]).Seconds())
		if tests := r.tests[pkg]; len(tests) > 0 {
			longest := slices.MinFunc(slices.Sorted(maps.Keys(tests)), func(a, b string) int { return tests[a].Compare(tests[b]) })
			b.WriteString(", in " + longest)
		}
		b.WriteString("\n")
	}
	return b.String()
}
