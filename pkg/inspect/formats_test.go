package inspect

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/readahead"
	"github.com/carton-oci/carton-oci/pkg/modelfile"
	"github.com/carton-oci/carton-oci/pkg/modelfile/formats"
)

// toy is a format whose header is text up to a blank line, of a length that only
// reading it tells: "NAME LENGTH" a line, behind as many bytes of padding as a
// first line says.
var toy = modelfile.Format{Name: "onnx", ReadHeader: func(r io.Reader, _ int64) (*modelfile.Content, error) {
	in := bufio.NewReader(r)
	c := &modelfile.Content{}
	at := int64(0)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("toy: %w", err)
		}
		if at += int64(len(line)); line == "\n" {
			break
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		t := modelfile.Tensor{DType: "U8", Offset: at}
		if _, err := fmt.Sscan(line, &t.Name, &t.Bytes); err != nil {
			return nil, err
		}
		t.Shape = []int64{t.Bytes}
		c.Tensors = append(c.Tensors, t)
	}
	for i := range c.Tensors {
		c.Tensors[i].Offset = at
		at += c.Tensors[i].Bytes
	}
	return c, nil
}}

// TestAnotherFormat: a format is a line of the table. What it has in common with
// others is done for it: ranges, memory, listing, counting, elements of their own
// and verified ones.
func TestAnotherFormat(t *testing.T) {
	before := formats.Table
	t.Cleanup(func() { formats.Table = before })
	formats.Table = append(slices.Clone(before), toy)

	for _, pad := range []int{0, 3 * headerAtOnce} {
		const one, two = 300_000, 80_000
		file := slices.Concat([]byte("#"+strings.Repeat("x", pad)+"\n"), []byte("one 300000\ntwo 80000\n\n"), pattern(one+two))
		const path = "model/m.onnx"
		a := counting(t, cartontest.New(map[string][]byte{path: file}, nil))
		tensors, notes := tensorsOf(t, a, Options{})
		if len(tensors) != 2 || len(notes) != 0 || len(a.ranges) > 2 || a.read > int64(pad)+headerAtOnce+readahead.Least {
			t.Errorf("got %s%s after %v, %d bytes", shown(tensors), noteText(notes), a.ranges, a.read)
		}
		a.ranges = nil
		got, verified := elements(t, a, find(t, a, "two", Options{}))
		if verified || !bytes.Equal(got, pattern(one + two)[one:]) {
			t.Errorf("by a range: got %d bytes, verified %v", len(got), verified)
		}
		forward := counting(t, cartontest.New(map[string][]byte{path: file}, nil, dear(path)))
		if got, verified = elements(t, forward, find(t, forward, "two", Options{})); !verified || !bytes.Equal(got, pattern(one + two)[one:]) {
			t.Errorf("read whole: got %d bytes, verified %v", len(got), verified)
		}
		if f := describe(t, a, Options{}); f.Format != "onnx" || f.Parameters != one+two || f.Precision != "uint8" {
			t.Errorf("got %+v", f)
		}
		if _, notes = tensorsOf(t, cartontest.New(map[string][]byte{path: file[:len("#")+pad]}, nil), Options{}); len(notes) != 1 || notes[0].Err == nil {
			t.Errorf("of a file that is cut: got %v, want a note", notes)
		}
	}
}
