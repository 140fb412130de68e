package main

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/registrytest"
)

// completed is what a shell is told of a word.
func completed(t *testing.T, words ...string) string {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("REGISTRY_AUTH_FILE", "")
	var out bytes.Buffer
	s := &session{printer: &printer{out: &out, err: failOn{t}}}
	s.complete(t.Context(), newApp(s), words)
	return out.String()
}

type failOn struct{ t *testing.T }

func (f failOn) Write(b []byte) (int, error) {
	f.t.Errorf("got %q beside the completions", b)
	return len(b), nil
}

// A registry that takes the question and never answers holds nobody up.
func TestCompletionOfASilentRegistry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := time.Now()
	if got := completed(t, "="+l.Addr().String()+"/org/m:", "pull"); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if took := time.Since(start); took > 2*completionWait {
		t.Errorf("took %s, want about %s", took, completionWait)
	}
}

// Of what a registry says nothing that is no tag reaches the shell, and no more than
// anybody reads.
func TestCompletionOfHostileTags(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		most   int
	}{
		"terminal codes":  {`{"name":"m","tags":["1","\u001b[2Jx","a\tb","c\nd","$(reboot)","e f"]}`, 1},
		"no list of tags": {`{"tags": {"a": 1}}`, 0},
		"very many":       {`{"name":"m","tags":["1` + strings.Repeat(`","1`, 2*completionMost) + `"]}`, completionMost},
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, registrytest.Config{})
			r.Break(registrytest.Fault{Methods: "GET", Path: "/tags/", Times: -1, Effect: registrytest.Answer(200, c.answer)})
			got := completed(t, "="+r.Host+"/m:", "pull")
			lines := strings.Fields(got)
			for _, line := range lines {
				if line != r.Host+"/m:1" {
					t.Errorf("got %q", line)
				}
			}
			if len(lines) > c.most {
				t.Errorf("got %d words, want at most %d", len(lines), c.most)
			}
		})
	}
}

// Words that no shell sends, and flags in odd places, are silence or words.
func TestCompletionOfOddWords(t *testing.T) {
	for _, words := range [][]string{
		nil,
		{""},
		{"x"},
		{"="},
		{"=", "--"},
		{"=", "--format"},
		{"=-", "--", "ls"},
		{"=--format=", "nothing"},
		{"=a", "-q", "-q", "ls"},
		{"=", "help", "help"},
		{"=\x00", "ls"},
		{"=oci:", "push"},
		{"=", "push", "", ""},
		{"=--", "--help"},
		{"=", "ls", "--help"},
		{"=", "pull", "-u", "ann"},
	} {
		completed(t, words...)
	}
	if got := completed(t, "=", "pull", "--help", "--format"); got != "text\njson\n" {
		t.Errorf("got %q", got)
	}
}
