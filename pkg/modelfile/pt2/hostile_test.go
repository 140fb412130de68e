package pt2_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/pkg/modelfile/pt2"
)

// archiveWith is an archive with a storage of three floats and this weights
// config and definition.
func archiveWith(config, definition string) []byte {
	return modeltest.TorchZip("archive", "little",
		modeltest.Record{Name: "data/weights/weight_0", Data: floats(3)},
		text("data/weights/m_weights_config.json", config),
		text("models/m.json", definition),
		text("archive_format", "pt2"), text("archive_version", "0"))
}

const goodMeta = `"dtype":7,"layout":7,"sizes":[{"as_int":3}],"strides":[{"as_int":1}],"storage_offset":{"as_int":0}`

func configOf(meta string) string {
	return `{"config":{"w":{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":{` + meta + `}}}}`
}

// TestBadWeights: what a config says of a tensor must be possible.
func TestBadWeights(t *testing.T) {
	if _, err := open(archiveWith(configOf(goodMeta), `{}`)); err != nil {
		t.Fatal(err)
	}
	swap := func(from, to string) string { return configOf(strings.Replace(goodMeta, from, to, 1)) }
	sized := func(sizes, strides, offset string) string {
		return configOf(`"dtype":7,"layout":7,"sizes":[` + sizes + `],"strides":[` + strides + `],"storage_offset":{"as_int":` + offset + `}`)
	}
	n := func(v string) string { return `{"as_int":` + v + `}` }
	const huge = "9223372036854775807"
	for _, c := range []struct{ name, config, want string }{
		{"no JSON", ``, "EOF"},
		{"no object", `[]`, "want '{'"},
		{"no config", `{}`, "has no config"},
		{"cut", configOf(goodMeta)[:60], "EOF"},
		{"trailing text", configOf(goodMeta) + "x", "want the end"},
		{"config twice", `{"config":{},"config":{}}`, `"config" occurs twice`},
		{"tensor twice", strings.Replace(configOf(goodMeta), `{"w":`, `{"w":{"path_name":"weight_0","use_pickle":true,"is_param":true,"tensor_meta":null},"w":`, 1), `"w" occurs twice`},
		{"key twice", swap(`"dtype":7`, `"dtype":7,"dtype":1`), `"dtype" occurs twice`},
		{"two numbers in one", swap(`{"as_int":3}`, `{"as_int":3,"as_expr":{"expr_str":"s0"}}`), "two numbers in one"},
		{"no number", swap(`{"as_int":3}`, `{}`), "holds no number"},
		{"another number", swap(`{"as_int":3}`, `{"as_float":3}`), "neither as_int nor as_expr"},
		{"no path", strings.Replace(configOf(goodMeta), `"path_name":"weight_0",`, "", 1), "has no path_name"},
		{"no such file", strings.Replace(configOf(goodMeta), "weight_0", "weight_1", 1), "data/weights/weight_1, which the archive does not hold"},
		{"a path that climbs", strings.Replace(configOf(goodMeta), "weight_0", "../../archive_format", 1), "which the archive does not hold"},
		{"no meta", `{"config":{"w":{"path_name":"weight_0","is_param":true,"use_pickle":false,"tensor_meta":null}}}`, "has no tensor_meta"},
		{"no strides", swap(`"strides":[{"as_int":1}],`, ""), "has no dtype, sizes or strides"},
		{"two strides", swap(`[{"as_int":1}]`, `[{"as_int":1},{"as_int":1}]`), "2 strides for 1 dimensions"},
		{"negative size", swap(`{"as_int":3}`, `{"as_int":-3}`), `got "-3"`},
		{"negative stride", swap(`{"as_int":1}`, `{"as_int":-1}`), `got "-1"`},
		{"negative offset", swap(`{"as_int":0}`, `{"as_int":-1}`), `got "-1"`},
		{"fraction", swap(`{"as_int":3}`, `{"as_int":3.0}`), `got "3.0"`},
		{"symbolic size", swap(`{"as_int":3}`, `{"as_expr":{"expr_str":"s0"}}`), "has no symbols"},
		{"symbolic stride", swap(`{"as_int":1}`, `{"as_expr":{"expr_str":"s0"}}`), "symbolic"},
		{"symbolic offset", swap(`{"as_int":0}`, `{"as_expr":{"expr_str":"s0"}}`), "symbolic"},
		{"one element too many", sized(n("4"), n("1"), "0"), "element 4 of a storage of 12 bytes, which has room for 3"},
		{"offset outside", sized(n("1"), n("1"), "3"), "element 4"},
		{"stride outside", sized(n("2"), n("3"), "0"), "element 4"},
		{"size over a file", sized(n(huge), n("0"), "0"), "too large for any file"},
		{"product overflows", sized(n("4294967296")+","+n("4294967296"), n("0")+","+n("0"), "0"), "too large for any file"},
		{"bytes overflow", sized(n("1152921504606846976"), n("0"), "0"), "too large for any file"},
		{"stride overflows", sized(n("3"), n(huge), "0"), "further than any file"},
		{"sum overflows", sized(n("2")+","+n("2"), n(huge)+","+n(huge), "0"), "further than any file"},
		{"offset overflows", sized(n("1"), n("1"), huge), "further than any file"},
		{"too many dimensions", sized(strings.Repeat(n("1")+",", 64)+n("1"), n("1"), "0"), "more than 64 dimensions"},
		{"deep nesting", `{"config":{},"x":` + strings.Repeat("[", 100_000), "nested deeper"},
		{"not UTF-8", "{\"config\":{\"\xff\":", "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(archiveWith(c.config, `{}`))
			if !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "m_weights_config.json") {
				t.Errorf("got %v, want a format error of the config with %q", err, c.want)
			}
		})
	}
	// An empty tensor needs nothing, whatever its strides.
	if _, err := open(archiveWith(sized(n("0")+","+n("5"), n("100")+","+n("1"), "3"), `{}`)); err != nil {
		t.Errorf("an empty tensor: %v", err)
	}
}

func TestBadDefinitions(t *testing.T) {
	signature := func(inputs string) string {
		return `{"graph_module":{"signature":{"input_specs":[` + inputs + `]}}}`
	}
	for _, c := range []struct{ name, definition, want string }{
		{"no JSON", `x`, "want '{'"},
		{"graph_module twice", `{"graph_module":{},"graph_module":{}}`, "occurs twice"},
		{"values twice", `{"graph_module":{"graph":{"inputs":[{"as_tensor":{"name":"x"}}],"outputs":[],"tensor_values":{"x":{` + goodMeta + `},"x":{` + goodMeta + `}}}}}`, `"x" occurs twice`},
		{"value is null", `{"graph_module":{"graph":{"tensor_values":{"x":null}}}}`, "is null"},
		{"inputs are no list", `{"graph_module":{"graph":{"inputs":{}}}}`, "want '['"},
		{"two arguments in one", signature(`{"user_input":{"arg":{"as_int":1,"as_float":2}}}`), "two arguments in one"},
		{"no argument", signature(`{"user_input":{"arg":{}}}`), "argument of no kind"},
		{"two specs in one", signature(`{"parameter":{},"buffer":{}}`), "two specs in one"},
		{"no spec", signature(`{}`), "spec of no kind"},
		{"name is a number", signature(`{"parameter":{"arg":{"name":1}}}`), `want '"'`},
		{"version is a number", `{"torch_version":2}`, `want '"'`},
		{"schema is a string", `{"schema_version":{"major":"8"}}`, "got"},
		{"expression is empty", `{"graph_module":{"graph":{"tensor_values":{"x":{"sizes":[{"as_expr":{}}]}}}}}`, "has no expr_str"},
		{"dtype is missing", `{"graph_module":{"graph":{"tensor_values":{"x":{}}}}}`, "has no dtype"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(archiveWith(configOf(goodMeta), c.definition))
			if !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "models/m.json") {
				t.Errorf("got %v, want a format error of the definition with %q", err, c.want)
			}
		})
	}
	a := mustOpen(t, archiveWith(configOf(goodMeta), `{"schema_version":{"major":9,"minor":1},"graph_module":{"new":[{"thing":NaN}]}}`))
	if !has(a.Findings, "schema 9.1, newer than 8") {
		t.Errorf("a newer schema: %q", a.Findings)
	}
	if a := mustOpen(t, archiveWith(configOf(goodMeta), `{"schema_version":1}`)); a.Models[0].Schema != "1.0" {
		t.Errorf("an early schema: %q", a.Models[0].Schema)
	}
}

func TestBadHeaders(t *testing.T) {
	with := func(order string, records ...modeltest.Record) []byte {
		return modeltest.TorchZip("archive", order, append(records, text("archive_format", "pt2"))...)
	}
	for _, c := range []struct {
		name string
		b    []byte
		kind error
		want string
	}{
		{"archive version", with("little", text("archive_version", "1")), pt2.ErrVersion, "archive_version is 1, and only 0 is known"},
		{"byte order", with("middle"), pt2.ErrFormat, "byteorder is middle"},
		{"long word", with(strings.Repeat("little", 100)), pt2.ErrFormat, "at most 256"},
		{"root folders", modeltest.PlainZip(t, false, text("a/archive_format", "pt2"), text("b/x", "")), pt2.ErrNotPT2, ""},
		{"no list of packages", with("little", text("data/aotinductor/m/weights_config.json", `[]`)), pt2.ErrFormat, "want '{'"},
		{"no list of weights", with("little", text("data/aotinductor/m/weights_config.json", `{"w":["x",[1],[1]]}`)), pt2.ErrFormat, "has 3 values"},
		{"five values", with("little", text("data/aotinductor/m/weights_config.json", `{"w":["x",[1],[1],0,0]}`)), pt2.ErrFormat, "more than 4 values"},
		{"weight without a file", with("little", text("data/aotinductor/m/weights_config.json", `{"w":["x",[1],[1],0]}`)), pt2.ErrFormat, "does not hold"},
		{"weight of many strides", with("little", text("data/weights/x", ""), text("data/aotinductor/m/weights_config.json", `{"w":["x",[1],[],0]}`)), pt2.ErrFormat, "0 strides for 1"},
		{"weight over a file", with("little", text("data/weights/x", ""), text("data/aotinductor/m/weights_config.json", `{"w":["x",[9223372036854775807],[1],0]}`)), pt2.ErrFormat, "further than any file"},
		{"metadata", with("little", text("data/aotinductor/m/x_metadata.json", `{"a":"1","a":"2"}`)), pt2.ErrFormat, "occurs twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := open(c.b); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v with %q", err, c.kind, c.want)
			}
		})
	}
	var many []modeltest.Record
	for i := range 1001 {
		many = append(many, text(fmt.Sprintf("data/aotinductor/m%d/x.so", i), ""))
	}
	if _, err := open(with("little", many...)); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "1001 compiled packages") {
		t.Errorf("many packages: got %v", err)
	}
}

// TestEveryByteMatters: no change of one byte outside the weights crashes, and an
// archive that ends anywhere is refused.
func TestEveryByteMatters(t *testing.T) {
	good := exampleArchive()
	for cut := range good {
		if _, err := open(good[:cut]); !errors.Is(err, pt2.ErrFormat) {
			t.Fatalf("cut to %d bytes: got %v", cut, err)
		}
	}
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 0x41
		a, err := open(bad)
		if err != nil {
			if !errors.Is(err, pt2.ErrFormat) && !errors.Is(err, pt2.ErrNotPT2) && !errors.Is(err, pt2.ErrVersion) {
				t.Fatalf("byte %d: got %v, which is of no kind", i, err)
			}
			continue
		}
		for j := range a.Models {
			for k := range a.Models[j].Weights {
				if r, err := a.Models[j].Weights[k].Read(bytes.NewReader(bad)); err == nil {
					_, _ = io.Copy(io.Discard, r)
				}
			}
		}
	}
}

// TestDocumentsAreChecked: a document whose bytes are not what the directory says
// is refused, and so is one that a deflate stream makes longer.
func TestDocumentsAreChecked(t *testing.T) {
	b := archiveWith(configOf(goodMeta), `{}`)
	changed := bytes.Replace(slices.Clone(b), []byte(`"is_param":true`), []byte(`"is_param":1e10`), 1)
	if _, err := open(changed); !errors.Is(err, pt2.ErrFormat) {
		t.Errorf("got %v", err)
	}
	changed = bytes.Replace(slices.Clone(b), []byte(`"path_name"`), []byte(`"Path_name"`), 1)
	if _, err := open(changed); !errors.Is(err, pt2.ErrFormat) {
		t.Errorf("got %v", err)
	}
	changed = bytes.Replace(slices.Clone(b), []byte(`"is_param":true`), []byte(`"is_param":null`), 1)
	if _, err := open(changed); !errors.Is(err, pt2.ErrFormat) {
		t.Errorf("got %v", err)
	}
	same := bytes.Replace(slices.Clone(b), []byte(`"w":{`), []byte(`"v":{`), 1)
	if _, err := open(same); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "got CRC") {
		t.Errorf("got %v", err)
	}
	deflated := modeltest.PlainZip(t, true, modeltest.Records(t, b)...)
	if _, err := open(deflated); err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(deflated, []byte("m_weights_config.json")) + len("m_weights_config.json")
	deflated[i+5] ^= 0x55
	if _, err := open(deflated); !errors.Is(err, pt2.ErrFormat) {
		t.Errorf("got %v", err)
	}
}

// TestSourceErrorsAreNoFormatErrors: a broken connection says nothing of the
// archive.
func TestSourceErrorsAreNoFormatErrors(t *testing.T) {
	a := sharing()
	a.Records = []modeltest.Record{{Name: "data/sample_inputs/encoder_0.pt", Data: make([]byte, 1<<20)}}
	b := modeltest.PT2(t, a)
	for n := range 2 {
		broken := errors.New("connection reset")
		_, err := pt2.Open(&failing{r: bytes.NewReader(b), after: n, err: broken}, int64(len(b)))
		if !errors.Is(err, broken) || errors.Is(err, pt2.ErrFormat) {
			t.Errorf("read %d fails: got %v", n, err)
		}
	}
}

// failing fails after so many reads.
type failing struct {
	r     io.ReaderAt
	after int
	err   error
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return f.r.ReadAt(p, off)
}

// TestMemoryIsBounded: documents that ask for more than their share are refused,
// whatever they ask for.
func TestMemoryIsBounded(t *testing.T) {
	pt2.SetMaxKept(t, 1<<20)
	long := strings.Repeat("n", 80<<10)
	each := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, ",")
	}
	ones := strings.TrimSuffix(strings.Repeat(`{"as_int":1},`, 64), ",")
	for name, b := range map[string][]byte{
		"long names of weights": archiveWith(`{"config":{`+each(20, func(i int) string {
			return fmt.Sprintf(`"%d`, i) + long + `":{"path_name":"weight_0","use_pickle":true,"tensor_meta":null}`
		})+`}}`, `{}`),
		"long names of arguments": archiveWith(configOf(goodMeta), `{"graph_module":{"graph":{"inputs":[`+each(20, func(int) string {
			return `{"as_tensor":{"name":"` + long + `"}}`
		})+`]}}}`),
		"long names of inputs": archiveWith(configOf(goodMeta), `{"graph_module":{"signature":{"input_specs":[`+each(20, func(int) string {
			return `{"user_input":{"arg":{"as_tensor":{"name":"` + long + `"}}}}`
		})+`]}}}`),
		"long symbols": archiveWith(configOf(goodMeta), `{"graph_module":{"graph":{"tensor_values":{`+each(20, func(i int) string {
			return fmt.Sprintf(`"%d":{"dtype":7,"strides":[],"sizes":[{"as_expr":{"expr_str":%q}}]}`, i, long)
		})+`}}}}`),
		"many dimensions": archiveWith(`{"config":{`+each(400, func(i int) string {
			return fmt.Sprintf(`"%d":{"path_name":"weight_0","use_pickle":true,"tensor_meta":{"dtype":7,"sizes":[%s],"strides":[%s]}}`, i, ones, ones)
		})+`}}`, `{}`),
	} {
		_, err := open(b)
		if !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
	pt2.SetMaxKept(t, 1<<40)
	if _, err := open(archiveWith(`{"config":{`+each(200_001, func(i int) string {
		return fmt.Sprintf(`"%d":{"path_name":"weight_0","tensor_meta":{"dtype":1,"sizes":[],"strides":[]}}`, i)
	})+`}}`, `{}`)); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "more than 200000 tensors") {
		t.Errorf("many tensors: got %v", err)
	}
}

// TestBytesBehindADeflateStream: what another reader could take for more of a
// document is refused.
func TestBytesBehindADeflateStream(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, r := range modeltest.Records(t, archiveWith(configOf(goodMeta), `{}`)) {
		var packed bytes.Buffer
		z, _ := flate.NewWriter(&packed, flate.BestSpeed)
		_, _ = z.Write(r.Data)
		_ = z.Close()
		packed.WriteString("more")
		f, err := w.CreateRaw(&zip.FileHeader{
			Name: r.Name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(r.Data),
			CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(r.Data)),
		})
		if err == nil {
			_, err = f.Write(packed.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(b.Bytes()); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "deflate stream") {
		t.Errorf("got %v", err)
	}
}

// TestWeightsLieWhereTheDirectorySays: a local header that is longer by four
// bytes, and so makes the signature of the data descriptor the end of the data,
// agrees with the directory in all else.
func TestWeightsLieWhereTheDirectorySays(t *testing.T) {
	b := archiveWith(configOf(goodMeta), `{}`)
	le := binary.LittleEndian
	field := b[30+le.Uint16(b[26:]):] // the padding "FB" of the first entry
	if string(b[:2])+string(field[:2]) != "PKFB" {
		t.Fatalf("begins with %q", b[:100])
	}
	le.PutUint16(b[28:], le.Uint16(b[28:])+4)
	le.PutUint16(field[2:], le.Uint16(field[2:])+4)
	a := mustOpen(t, b)
	if _, err := a.Models[0].Weights[0].Read(bytes.NewReader(b)); !errors.Is(err, pt2.ErrFormat) || !strings.Contains(err.Error(), "data begin at") {
		t.Errorf("got %v, want a format error", err)
	}
}
