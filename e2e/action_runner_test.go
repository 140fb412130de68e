package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// action is action.yml, as a runner reads it.
type action struct {
	Inputs map[string]struct {
		Required bool
		Default  string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Steps []struct {
			ID, Name, Shell, Run string
			Env                  map[string]string
		}
	}
}

// runner runs the steps of the action one after the other, as GitHub's runner does:
// each script as it is, under bash -e -o pipefail, with the files and variables that
// it is promised.
type runner struct {
	action
	user   *user
	env    []string // besides those of every job
	stdout string
	stderr string
	// summary is what the steps wrote for the page of the run.
	summary string
	// installed has what the first step brought in an earlier run, and saves it; "" for
	// nothing.
	installed string
}

const jobToken = "ghs_the_token_of_this_job"

// job is a job's environment of GitHub's; the working folder is no checkout.
var job = []string{
	"GITHUB_ACTIONS=true", "GITHUB_ACTOR=octocat", "GITHUB_SERVER_URL=https://github.com", "GITHUB_REPOSITORY=Org/Model",
	"GITHUB_SHA=0123456789abcdef0123456789abcdef01234567", "RUNNER_OS=Linux", "RUNNER_ARCH=" + runnerArch,
}

func newRunner(t *testing.T, u *user, env ...string) *runner {
	t.Helper()
	r := &runner{user: u, env: env}
	readYAML(t, filepath.Join(testenv.Root(), "action.yml"), &r.action)
	return r
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z.-]+) *\}\}`)

// run runs the action with these inputs. It returns the outputs, and whether every
// step went well.
func (r *runner) run(t *testing.T, inputs map[string]string) (outputs map[string]string, ok bool) {
	t.Helper()
	temp := t.TempDir()
	values := map[string]string{"github.token": jobToken}
	expand := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(e string) string { return values[expression.FindStringSubmatch(e)[1]] })
	}
	for name, in := range r.Inputs {
		values["inputs."+name] = expand(in.Default)
	}
	for name, value := range inputs {
		if _, known := r.Inputs[name]; !known {
			t.Fatalf("the action has no input %s", name)
		}
		values["inputs."+name] = value
	}
	r.stdout, r.stderr, r.summary = "", "", ""
	path := os.Getenv("PATH")
	for i, step := range r.Runs.Steps {
		if i == 0 && r.installed != "" {
			path = r.installed + string(os.PathListSeparator) + path
			continue
		}
		if expression.MatchString(step.Run) || step.Shell != "bash" {
			t.Fatalf("%s: an expression stands in a script, or its shell is not bash", step.Name)
		}
		files := map[string]string{}
		env := append([]string{"PATH=" + path, "RUNNER_TEMP=" + temp, "GITHUB_ACTION_PATH=" + testenv.Root()}, job...)
		for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "SCRIPT"} {
			files[name] = filepath.Join(temp, fmt.Sprintf("%s-%d", name, i))
			env = append(env, name+"="+files[name])
			if err := os.WriteFile(files[name], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, value := range step.Env {
			env = append(env, name+"="+expand(value))
		}
		if err := os.WriteFile(files["SCRIPT"], []byte(step.Run), 0o600); err != nil {
			t.Fatal(err)
		}
		res := r.user.with(append(env, r.env...)...).exec(t, "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", files["SCRIPT"])
		r.stdout, r.stderr = r.stdout+res.stdout, r.stderr+res.stderr
		for name, value := range keyValues(t, files["GITHUB_OUTPUT"]) {
			values["steps."+step.ID+".outputs."+name] = value
		}
		for dir := range strings.Lines(read(t, files["GITHUB_PATH"])) {
			path = strings.TrimSpace(dir) + string(os.PathListSeparator) + path
		}
		r.summary += read(t, files["GITHUB_STEP_SUMMARY"])
		if res.code != 0 {
			return nil, false
		}
	}
	outputs = map[string]string{}
	for name, out := range r.Outputs {
		outputs[name] = expand(out.Value)
	}
	return outputs, true
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// keyValues reads lines of NAME=VALUE, and nothing else.
func keyValues(t *testing.T, name string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for line := range strings.Lines(read(t, name)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := values[key]; !ok || twice {
			t.Errorf("%s: got the line %q", filepath.Base(name), line)
		}
		values[key] = value
	}
	return values
}

// releases is a server of releases with the command under test as every release.
// corrupt changes a file on its way.
func releases(t *testing.T, corrupt func(name string, content []byte) []byte) (env []string, url string, sums map[string]string) {
	t.Helper()
	testenv.Program(t, "curl")
	program, err := os.ReadFile(cartonOCI)
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(newRunner(t, nil).Inputs["version"].Default, "v")
	files := map[string][]byte{}
	sums = map[string]string{}
	var list bytes.Buffer
	for name, pack := range map[string]func([]byte) []byte{
		"linux_" + goArch + ".tar.gz": tarGzOf, "windows_" + goArch + ".zip": zipOf,
	} {
		name = "carton-oci_" + version + "_" + name
		files[name] = pack(program)
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(files[name]))
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	files["checksums.txt"] = list.Bytes()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, found := strings.CutPrefix(req.URL.Path, "/releases/v"+version+"/")
		content, known := files[name]
		if !found || !known {
			http.NotFound(w, req)
			return
		}
		if corrupt != nil {
			content = corrupt(name, bytes.Clone(content))
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"CURL_CA_BUNDLE=" + ca}, server.URL + "/releases", sums
}

func tarGzOf(program []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
	w := tar.NewWriter(z)
	_ = w.WriteHeader(&tar.Header{Name: "carton-oci", Mode: 0o755, Size: int64(len(program))})
	_, _ = w.Write(program)
	_, _ = w.Close(), z.Close()
	return b.Bytes()
}

func zipOf(program []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "carton-oci", Method: zip.Store}
	h.SetMode(0o755)
	f, _ := w.CreateHeader(h)
	_, _ = f.Write(program)
	_ = w.Close()
	return b.Bytes()
}

// shellOf is what runs the script of a GitLab job.
func shellOf(t *testing.T) string {
	t.Helper()
	if dash, err := exec.LookPath("dash"); err == nil {
		return dash
	}
	return testenv.Program(t, "sh")
}
