package convert

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// A compressed tar with a list is the listed tar and nothing more: another
// program that unpacks the layer sees the same files.
func TestListedTarsHoldNothingElse(t *testing.T) {
	files := map[string][]byte{"model/a.py": []byte("aaa"), "model/b.py": []byte("bbb"), "model/d/c.py": nil}
	more := foreignTar([]string{"model/evil.py"}, map[string]string{"model/evil.py": "evil"})
	for name, c := range map[string]struct {
		repack func(tar []byte) []byte
		kind   error
	}{
		"as it was":          {gzipOf, nil},
		"an entry more":      {func(tar []byte) []byte { return gzipOf(append(tar[:len(tar)-1024:len(tar)-1024], more...)) }, layout.ErrFormat},
		"data behind":        {func(tar []byte) []byte { return gzipOf(append(tar, 0)) }, layout.ErrFormat},
		"a second tar":       {func(tar []byte) []byte { return gzipOf(append(tar, more...)) }, layout.ErrFormat},
		"a second member":    {func(tar []byte) []byte { return append(gzipOf(tar), gzipOf(more)...) }, layout.ErrFormat},
		"one end block":      {func(tar []byte) []byte { return gzipOf(tar[:len(tar)-512]) }, io.ErrUnexpectedEOF},
		"cut in a member":    {func(tar []byte) []byte { return gzipOf(tar[:1025]) }, io.ErrUnexpectedEOF},
		"cut between":        {func(tar []byte) []byte { return gzipOf(tar[:1536]) }, io.ErrUnexpectedEOF},
		"a cut stream":       {func(tar []byte) []byte { b := gzipOf(tar); return b[:len(b)-9] }, layout.ErrFormat},
		"another mode":       {func(tar []byte) []byte { return gzipOf(bytes.Replace(tar, []byte("0000644"), []byte("0000755"), 1)) }, layout.ErrFormat},
		"other padding":      {func(tar []byte) []byte { tar[1024+3] = 1; return gzipOf(tar) }, layout.ErrFormat},
		"other content":      {func(tar []byte) []byte { return gzipOf(bytes.Replace(tar, []byte("bbb"), []byte("bbc"), 1)) }, carton.ErrChecksum},
		"no gzip":            {func(tar []byte) []byte { return tar }, layout.ErrFormat},
		"nothing":            {func([]byte) []byte { return nil }, io.ErrUnexpectedEOF},
		"compressed nothing": {func([]byte) []byte { return gzipOf(nil) }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			plain, _, a := pushed(t, cartontest.New(files, nil), Options{BundleBelow: 100})
			tar := bytes.Clone(plain.blobs[a.Layers[2].Digest])
			s, _, packed := pushed(t, cartontest.New(files, nil), Options{BundleBelow: 100, Compress: CompressGzip})
			m, err := layout.ParseManifest(packed.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			repacked := s.keep("", c.repack(tar))
			m.Layers[2].Digest, m.Layers[2].Size = repacked.Digest, repacked.Size
			desc := s.keep(ocispec.MediaTypeImageManifest, marshal(m))
			err = readAll(t, s, desc, OpenOptions{})
			if !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
			if hints := hint.Of(err); name == "another mode" && (len(hints) != 1 || !strings.Contains(hints[0].String(), "oras blob fetch --output - REPOSITORY@"+string(repacked.Digest))) {
				t.Errorf("got the hints %q, want how to get at the files of a tar that somebody changed", hints)
			}
			if s.open != 0 {
				t.Errorf("%d bodies are open", s.open)
			}
		})
	}
}
