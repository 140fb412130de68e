package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// The scripts in testdata/script run the command as a user does. Besides
// testscript's own commands they have
//
//	code N COMMAND ARG…         run a command, and want this exit code
//	mkcarton FILE PATH=CONTENT… write a carton; CONTENT may be @SIZE random bytes
//	                            at its end, -noindex leaves out tensor_data/
//	mkfolder DIR PATH=CONTENT…  the same, unpacked
//	mkmanifest DIR              write the MANIFEST of a folder's files
//	mkzip FILE DIR              zip a folder as it is, right or wrong
//	cut FILE SIZE               cut a file off
//	spoil FILE TEXT OTHER       replace bytes in a file
//	registry VAR [OPTION…]      start a registry; $VAR is its host; -tls, -basic
//	                            USER:PASSWORD, -token USER:PASSWORD, -public (with
//	                            -token: anybody may pull), -open (… may GET blobs),
//	                            -images (it takes no artifacts), -layers (no layers
//	                            but an image's either), -referrers (it lists them,
//	                            one a page), -pages (tags, two a page), -nodelete,
//	                            -notagdelete
//	web VAR DIR                 serve a folder over https; $VAR_CA is its CA
//	corrupt VAR REPO HASH       make a registry's blob wrong
//	fault VAR METHODS PATH CODE make a registry answer with a status for ever
//	requests VAR METHODS PATH N want so many requests since the last time
//	json FILE KEY.KEY VALUE     want a value in JSON; KEY may be an index
//	keys FILE KEY NAME…         want exactly these keys; KEY "." is the whole
//	entries DIR NAME…           want exactly these entries in a folder
//	image VAR REPO:TAG CONFIG   put an artifact with this type of config and one
//	                            layer, model.pt, into a registry
//	fixture FILE NAME           copy a real file made by another program; loud
//	                            skip of the script where it is missing
//	mkreference FILE            write a carton as the reference implementation does
//	links FILE                  print what LINKS of a carton names
//	mksafetensors FILE NAME:DTYPE:DIM,DIM…
//	                            write a safetensors file
//	mktorchscript FILE          write an archive as torch.jit.save does
//	mkwasm FILE                 write a WebAssembly component
//	mkpt2 FILE                  write a PT2 archive of two models, a and b
//	annotation DIR:TAG KEY RE   want an annotation of an image layout's artifact
//	tail FILE TEXT              want these last bytes of a file
//	envfile VAR FILE            set a variable to the line that a file holds
//	needs PROGRAM               loud skip of the script where it is missing
func TestScripts(t *testing.T) {
	testenv.Heavy(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "home", "cache"))
			env.Setenv("NO_PROXY", "*")
			env.Setenv("GORACE", noSleep)
			env.Values[scriptKey{}] = &scriptState{tb: env.T().(testing.TB), registries: map[string]*registrytest.Registry{}}
			if err := os.Mkdir(filepath.Join(env.WorkDir, "w"), 0o755); err != nil {
				return err
			}
			return os.Mkdir(env.Getenv("HOME"), 0o755)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": scriptCode, "mkcarton": scriptMake, "mkfolder": scriptMake, "mkmanifest": scriptManifest, "mkzip": scriptZip,
			"cut": scriptCut, "spoil": scriptSpoil, "registry": scriptRegistry, "web": scriptWeb, "corrupt": scriptCorrupt,
			"fault": scriptFault, "requests": scriptRequests, "json": scriptJSON, "keys": scriptKeys, "entries": scriptEntries,
			"fixture": scriptFixture, "mkreference": scriptReference, "links": scriptLinks, "image": scriptImage,
			"mksafetensors": scriptSafetensors, "mkgguf": scriptGGUF, "mkpt2": scriptPT2, "mktorchscript": scriptTorchScript, "mkwasm": scriptWasm, "tail": scriptTail,
			"needs": scriptNeeds, "annotation": scriptAnnotation, "envfile": scriptEnvFile,
		},
	})
}

// noSleep is for GORACE: the race detector waits a second at the end of every
// program that it watches.
const noSleep = "atexit_sleep_ms=0"

// patience is how long people wait for a completion. What is completed is tested
// with more of it, or a busy machine would be a failure.
var patience = completionWait

func TestMain(m *testing.M) {
	completionWait = time.Minute
	testscript.Main(m, map[string]func(){"carton-oci": judged})
}

type scriptKey struct{}

type scriptState struct {
	tb         testing.TB
	registries map[string]*registrytest.Registry
}

func state(ts *testscript.TestScript) *scriptState { return ts.Value(scriptKey{}).(*scriptState) }

func (s *scriptState) registry(ts *testscript.TestScript, name string) *registrytest.Registry {
	r := s.registries[name]
	if r == nil {
		ts.Fatalf("there is no registry %s", name)
	}
	return r
}

func scriptCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%s: got the exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// scriptMake is mkcarton and mkfolder.
func scriptMake(ts *testscript.TestScript, _ bool, args []string) {
	files, symlinks := map[string][]byte{carton.IndexName: []byte("tensor = []\n")}, map[string]string{}
	for i, arg := range args[1:] {
		if arg == "-noindex" {
			delete(files, carton.IndexName)
			continue
		}
		if link, target, ok := strings.Cut(arg, "->"); ok {
			symlinks[link] = target
			continue
		}
		name, text, _ := strings.Cut(arg, "=")
		content := []byte(strings.ReplaceAll(text, `\n`, "\n"))
		if size, ok := strings.CutPrefix(text, "@"); ok {
			n, err := parseSize(size)
			ts.Check(err)
			content = make([]byte, n)
			random := rand.NewChaCha8([32]byte{byte(i), byte(len(name))})
			_, _ = random.Read(content)
		}
		files[name] = content
	}
	src := cartontest.New(files, symlinks)
	name := ts.MkAbs(args[0])
	if strings.HasSuffix(name, ".carton") {
		ts.Check(carton.Assemble(context.Background(), name, src, carton.AssembleOptions{}))
	} else {
		ts.Check(carton.Extract(context.Background(), name, src, carton.ExtractOptions{}))
	}
}

func scriptManifest(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.RemoveAll(filepath.Join(dir, carton.ManifestName)))
	m, err := cartontest.Manifest(os.DirFS(dir))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(dir, carton.ManifestName), m.Bytes(), 0o644))
}

func scriptZip(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	fsys := os.DirFS(ts.MkAbs(args[1]))
	ts.Check(fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		entry, err := w.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Deflate})
		if err == nil {
			_, err = entry.Write(content)
		}
		return err
	}))
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

func scriptCut(ts *testscript.TestScript, _ bool, args []string) {
	size, err := parseSize(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}

func scriptSpoil(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	before, err := os.ReadFile(name)
	ts.Check(err)
	after := bytes.ReplaceAll(before, []byte(args[1]), []byte(args[2]))
	if bytes.Equal(before, after) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, after, 0o644))
}

func scriptRegistry(ts *testscript.TestScript, _ bool, args []string) {
	var conf registrytest.Config
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-tls":
			conf.TLS = true
		case "-basic", "-token":
			user, password, _ := strings.Cut(args[i+1], ":")
			conf.Auth.Users = map[string]string{user: password}
			conf.Auth.Bearer = args[i] == "-token"
			i++
		case "-public":
			conf.Auth.AnonymousPull = true
		case "-open":
			conf.Auth.AnonymousBlobs = true
		case "-images":
			conf.Quirks.ImagesOnly = true
		case "-layers":
			conf.Quirks.ImageLayersOnly = true
		case "-referrers":
			conf.Quirks.Referrers, conf.Quirks.ReferrersPage = true, 1
		case "-pages":
			conf.Quirks.TagsPage = 2
		case "-nodelete":
			conf.Quirks.NoDelete = http.StatusMethodNotAllowed
		case "-notagdelete":
			conf.Quirks.NoTagDelete = http.StatusBadRequest
		default:
			ts.Fatalf("unknown option %s", args[i])
		}
	}
	s := state(ts)
	r := registrytest.New(s.tb, conf)
	s.registries[args[0]] = r
	ts.Setenv(args[0], r.Host)
	if conf.TLS {
		ts.Setenv(args[0]+"_CA", r.CAFile(s.tb))
	}
}

func scriptWeb(ts *testscript.TestScript, _ bool, args []string) {
	s := httptest.NewTLSServer(http.FileServer(http.Dir(ts.MkAbs(args[1]))))
	ts.Defer(s.Close)
	ts.Setenv(args[0], strings.TrimPrefix(s.URL, "https://"))
	ca := ts.MkAbs("web-ca.pem")
	ts.Check(os.WriteFile(ca, pemOf(s.Certificate().Raw), 0o644))
	ts.Setenv(args[0]+"_CA", ca)
}

func scriptCorrupt(ts *testscript.TestScript, _ bool, args []string) {
	r := state(ts).registry(ts, args[0])
	dgst := digest.NewDigestFromEncoded(digest.SHA256, args[2])
	b, ok := r.Blob(args[1], dgst)
	if !ok {
		ts.Fatalf("there is no blob %s", dgst)
	}
	b = slices.Clone(b)
	b[len(b)/2] ^= 1
	r.Corrupt(args[1], dgst, b)
}

func scriptFault(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[3])
	ts.Check(err)
	state(ts).registry(ts, args[0]).Break(registrytest.Fault{
		Methods: args[1], Path: args[2], Times: -1, Effect: registrytest.Answer(status, ""),
	})
}

func scriptRequests(ts *testscript.TestScript, _ bool, args []string) {
	r := state(ts).registry(ts, args[0])
	want, err := strconv.Atoi(args[3])
	ts.Check(err)
	if got := r.Count(args[1], args[2]); got != want {
		ts.Fatalf("got %d requests %s %s, want %d", got, args[1], args[2], want)
	}
	r.Forget()
}

// at returns the part of a JSON file that a path names.
func at(ts *testscript.TestScript, file, path string) any {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &v))
	if path == "." {
		return v
	}
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = in[key]; !ok {
				ts.Fatalf("%s: there is no %s", path, key)
			}
		case []any:
			i, err := strconv.Atoi(key)
			ts.Check(err)
			if i >= len(in) {
				ts.Fatalf("%s: there are %d items", path, len(in))
			}
			v = in[i]
		default:
			ts.Fatalf("%s: got %T before %s", path, v, key)
		}
	}
	return v
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	v := at(ts, args[0], args[1])
	got, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		ts.Check(err)
		got = string(b)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s: got %s, want %s", args[1], got, args[2])
	}
}

func scriptKeys(ts *testscript.TestScript, _ bool, args []string) {
	v, ok := at(ts, args[0], args[1]).(map[string]any)
	if !ok {
		ts.Fatalf("%s: got no object", args[1])
	}
	var got []string
	for key := range v {
		got = append(got, key)
	}
	sameNames(ts, got, args[2:])
}

func scriptEntries(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	sameNames(ts, got, args[1:])
}

func sameNames(ts *testscript.TestScript, got, want []string) {
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		ts.Fatalf("got %q, want %q", got, want)
	}
}

func scriptFixture(ts *testscript.TestScript, _ bool, args []string) {
	content, err := os.ReadFile(testenv.Foreign(state(ts).tb, args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o644))
}

func scriptNeeds(ts *testscript.TestScript, _ bool, args []string) {
	testenv.Program(state(ts).tb, args[0])
}

func scriptEnvFile(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

func scriptImage(ts *testscript.TestScript, _ bool, args []string) {
	r := state(ts).registry(ts, args[0])
	repo, tag, _ := strings.Cut(args[1], ":")
	config, layer := r.AddBlob(repo, []byte("{}")), r.AddBlob(repo, []byte("weights"))
	config.MediaType = args[2]
	layer.MediaType = "application/vnd.cnai.model.weight.v1.raw"
	layer.Annotations = map[string]string{"org.cnai.model.filepath": "model.pt"}
	art, err := layout.NewArtifact(layout.ArtifactSpec{
		Config: layout.Layer{Descriptor: config}, Layers: []layout.Layer{{Descriptor: layer}},
	})
	ts.Check(err)
	r.AddManifest(repo, art.MediaType, art.Manifest, tag)
}

func scriptLinks(ts *testscript.TestScript, _ bool, args []string) {
	src, err := carton.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer src.Close()
	if src.Links() == nil {
		ts.Fatalf("%s has no LINKS", args[0])
	}
	_, err = ts.Stdout().Write(src.Links().Marshal())
	ts.Check(err)
}
