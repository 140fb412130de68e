package client

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A stream is the file, bit for bit, thin too; and options that need a file are
// refused with it.
func TestPullStream(t *testing.T) {
	dir := t.TempDir()
	target := inMemory()
	pushTo(t, target, "h.io/m:1", sample())
	c := fresh(within(target))
	for _, thin := range []bool{false, true} {
		opts := PullOptions{Thin: thin}
		if thin {
			opts.LinkBase = "https://example.com/b"
		}
		file, stream := opts, opts
		file.Output = filepath.Join(dir, "m.carton")
		file.Force = true
		if _, err := c.Pull(t.Context(), "h.io/m:1", file); err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(file.Output)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		stream.Stream = &got
		r, err := c.Pull(t.Context(), "h.io/m:1", stream)
		if err != nil || !bytes.Equal(got.Bytes(), want) || r.Path != "" || r.ModelHash == "" {
			t.Errorf("thin %v: got %d bytes and %+v, want the file's %d: %v", thin, got.Len(), r, len(want), err)
		}
	}
	for name, opts := range map[string]PullOptions{
		"a file":    {Output: "x"},
		"a folder":  {Unpack: "x"},
		"force":     {Force: true},
		"from":      {From: []string{"x"}},
		"a default": {OutputDir: "x"},
	} {
		opts.Stream = io.Discard
		if _, err := c.Pull(t.Context(), "h.io/m:1", opts); err == nil {
			t.Errorf("%s beside a stream: got no error", name)
		}
	}
}
