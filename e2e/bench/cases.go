package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// benchCase is one row of what was promised.
type benchCase struct {
	name  string
	title string
	run   func(ctx context.Context, r *rig) (result, error)
}

// cases are all of them, in the order of the table.
var cases []benchCase

func init() {
	cases = []benchCase{
		{"push", "push in 4 members, cold", pushCold},
		{"again", "push again, unchanged", pushAgain},
		{"changed", "push with 1 of 4 members changed", pushChanged},
		{"pull", "pull in 4 members", pullLarge},
		{"slow", "pull 1 member of half the size, each connection limited to 20 MB/s", pullSlow},
		{"far-push", "push 256 MiB over TLS, 50 ms away", pushFar},
		{"far-pull", "pull in 4 members over TLS, 50 ms away", pullFar},
		{"kill-push", "push, killed at half, again: the second run", pushKilled},
		{"kill-pull", "pull, killed at half, again: the second run", pullKilled},
		{"memory", "memory: one size and ten times as much", memory},
		{"tensor", "read 1 tensor of 64 MiB out of 100 GiB", oneTensor},
		// Last: a child's peak is never below its parent's, and 10,000 members leave
		// one behind.
		{"many-push", "push 10,000 members of 4 KiB", pushMany},
		{"many-pull", "pull 10,000 members of 4 KiB", pullMany},
	}
}

func (r *rig) measure(ctx context.Context, c benchCase, b *book) error {
	fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, c.title)
	start := time.Now()
	result, err := c.run(ctx, r)
	if err != nil {
		return err
	}
	result.Case, result.When = c.name, time.Now().Format(time.DateOnly)
	if result.Title == "" {
		result.Title = c.title
	}
	for _, v := range result.Verdicts {
		fmt.Fprintf(os.Stderr, "  %s %s: %s\n", mark(v.OK), v.Wanted, v.Got)
	}
	fmt.Fprintf(os.Stderr, "  %.0f s in all\n", time.Since(start).Seconds())
	b.put(result)
	return nil
}

// mark is how a verdict is shown.
func mark(ok bool) string {
	if ok {
		return "✓"
	}
	return "✗"
}

// compare runs the contenders and returns the result without verdicts. Those
// without a program on this machine are left out.
func (r *rig) compare(ctx context.Context, contenders ...contender) (result, error) {
	var here []contender
	for _, c := range contenders {
		if c.name == "curl" && r.curl == "" || c.name == "skopeo" && r.skopeo == "" {
			fmt.Fprintf(os.Stderr, "  %s is not installed\n", c.name)
			continue
		}
		here = append(here, c)
	}
	runs, err := r.rounds(ctx, here)
	var res result
	for _, c := range here {
		res.Programs = append(res.Programs, measured{c.name, runs[c.name]})
	}
	return res, err
}

// plain returns a program that does not depend on anything that is made before
// its run.
func plain(p program) func(context.Context) (program, error) {
	return func(context.Context) (program, error) { return p, nil }
}

// gib writes a size for a title.
func gib(size int64) string {
	if size%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", size>>30)
	}
	return fmt.Sprintf("%d MiB", size>>20)
}
