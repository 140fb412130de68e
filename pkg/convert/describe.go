package convert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// formatSuffixes say what the weights' format is called, by the end of their
// file names.
var formatSuffixes = []struct {
	format   string
	suffixes []string
}{
	{"safetensors", []string{".safetensors"}},
	{"gguf", []string{".gguf", ".ggml"}},
	{"onnx", []string{".onnx"}},
	{"pt2", []string{".pt2"}},
	{"pytorch", []string{".pt", ".pth", ".bin", ".ckpt", ".ot"}},
	{"wasm", []string{".wasm"}},
	{"keras", []string{".h5", ".keras"}},
	{"tflite", []string{".tflite"}},
	{"coreml", []string{".mlmodel"}},
	{"paddle", []string{".pdparams"}},
}

// precisions are ModelPack's names for the types of safetensors; any other is
// its own name in lower case.
var precisions = map[safetensors.DType]string{
	safetensors.F64: "float64", safetensors.F32: "float32", safetensors.F16: "float16", safetensors.BF16: "bfloat16",
	safetensors.I64: "int64", safetensors.I32: "int32", safetensors.I16: "int16", safetensors.I8: "int8",
	safetensors.U64: "uint64", safetensors.U32: "uint32", safetensors.U16: "uint16", safetensors.U8: "uint8",
	safetensors.C64: "complex64", safetensors.F4: "float4",
	safetensors.F8E4M3: "float8_e4m3", safetensors.F8E5M2: "float8_e5m2", safetensors.F8E8M0: "float8_e8m0",
	safetensors.F8E4M3FNUZ: "float8_e4m3fnuz", safetensors.F8E5M2FNUZ: "float8_e5m2fnuz",
	safetensors.F6E2M3: "float6_e2m3", safetensors.F6E3M2: "float6_e3m2",
}

const (
	// headerAtOnce is how much of a safetensors file is asked for first, in bytes:
	// nearly all headers are shorter.
	headerAtOnce = 100_000
	// headersInParallel is how many files' headers are read at once.
	headersInParallel = 8
)

// typeFacts count the tensors of one type.
type typeFacts struct {
	Elements int64 `json:"elements"`
	Bytes    int64 `json:"bytes"`
}

// fileFacts are a safetensors file's tensors by type. A file that is none, or is
// broken, has none: its content is its author's affair.
type fileFacts map[safetensors.DType]typeFacts

// describe finds out what the weights are: regular members below model/, the
// same content counted once.
func describe(ctx context.Context, src carton.Source, members []carton.Member, c cache) (Details, error) {
	formats := map[string]int64{}
	var files []carton.Member
	seen := map[string]bool{}
	for _, m := range members {
		f := formatOf(m.Path)
		if f == "" || m.Target != "" || seen[m.Hash] {
			continue
		}
		seen[m.Hash] = true
		formats[f] += m.Size
		if f == "safetensors" {
			files = append(files, m)
		}
	}
	facts := make([]fileFacts, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(headersInParallel)
	for i := range files {
		group.Go(func() (err error) {
			facts[i], err = factsOf(ctx, src, files[i], c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Details{}, err
	}
	d := sumFacts(facts)
	if names := byWeight(formats); len(names) > 0 {
		d.Format = names[0]
	}
	return d, nil
}

// formatOf returns the format of a file below model/, "" where its name tells
// none.
func formatOf(member string) string {
	if !strings.HasPrefix(member, modelFolder) {
		return ""
	}
	base := lowerASCII(path.Base(member))
	for _, f := range formatSuffixes {
		for _, s := range f.suffixes {
			if strings.HasSuffix(base, s) {
				return f.format
			}
		}
	}
	return ""
}

// sumFacts fills in precision and paramSize.
func sumFacts(files []fileFacts) (d Details) {
	weights := map[string]int64{}
	elements := int64(0)
	for _, f := range files {
		for dtype, facts := range f {
			name, ok := precisions[dtype]
			if !ok {
				name = lowerASCII(string(dtype))
			}
			weights[name] += facts.Bytes
			elements += facts.Elements
		}
	}
	d.Precision = strings.Join(byWeight(weights), ",")
	if len(weights) > 0 {
		d.ParamSize = paramSize(elements)
	}
	return d
}

// byWeight returns the names, most bytes first, ties by name.
func byWeight(bytes map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
}

// paramSize writes a count of parameters as people say it: 376940 is "376.9K",
// 8030261248 is "8B". Thousands, one decimal, rounded half up, ".0" left out.
func paramSize(n int64) string {
	unit, suffix := int64(1), ""
	for _, s := range []string{"K", "M", "B", "T"} {
		if n < unit*1000-unit/20 { // what rounds to 1000 is the next unit's
			break
		}
		unit, suffix = unit*1000, s
	}
	if unit == 1 {
		return strconv.FormatInt(n, 10)
	}
	tenths := n / (unit / 10)
	if n%(unit/10) >= unit/20 {
		tenths++
	}
	text := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	return text + suffix
}

// factsOf reads a safetensors file's header, unless the cache knows the content.
func factsOf(ctx context.Context, src carton.Source, m carton.Member, c cache) (fileFacts, error) {
	key := "safetensors " + m.Hash
	var facts fileFacts
	if c.get(key, &facts) {
		return facts, nil
	}
	r := &headerReader{ctx: ctx, src: src, path: m.Path, size: m.Size}
	h, err := safetensors.ReadHeader(r)
	if r.err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", carton.QuotePath(m.Path), r.err)
	}
	facts = fileFacts{}
	if err == nil && h.Size() == m.Size {
		for i := range h.Tensors {
			t := &h.Tensors[i]
			f := facts[t.DType]
			f.Elements += t.Elements()
			f.Bytes += t.End - t.Begin
			facts[t.DType] = f
		}
	}
	c.put(key, facts)
	return facts, nil
}

// headerReader reads a member's header through one range, or two where it is
// long. It tells errors of the source from those of the content.
type headerReader struct {
	ctx  context.Context //nolint:containedctx // lives within one call
	src  carton.Source
	path string
	size int64

	buf []byte // what was read and not given out
	off int64  // where the next range begins
	end int64  // where the header ends, once known
	err error  // of the source
}

func (r *headerReader) Read(p []byte) (int, error) {
	if len(r.buf) == 0 && r.err == nil {
		r.err = r.next()
	}
	if r.err != nil {
		return 0, r.err
	}
	if len(r.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// next reads the next range into buf, and nothing behind the header.
func (r *headerReader) next() error {
	n := min(r.size, headerAtOnce)
	if r.off > 0 {
		n = min(r.size, r.end) - r.off
	}
	if n <= 0 {
		return nil
	}
	in, err := r.src.OpenRange(r.ctx, r.path, r.off, n)
	if err != nil {
		return err
	}
	defer in.Close()
	// As much as comes, not as much as was asked for at once: a header may be long
	// and a size a lie.
	var b bytes.Buffer
	if _, err := io.Copy(&b, in); err != nil {
		return err
	}
	r.buf = b.Bytes()
	if r.off == 0 && len(r.buf) >= 8 {
		r.end = 8 + int64(min(binary.LittleEndian.Uint64(r.buf), safetensors.MaxHeaderBytes))
	}
	r.off += int64(len(r.buf))
	return nil
}
