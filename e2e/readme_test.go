//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: every command of the README, and of docs/getting-started.md, does what it says, as it is printed and
// in its order. ghcr.io is a registry in a network of the test's own, at an address
// that is public everywhere else, because links lead to public addresses only.

// ownNetwork is set where the test runs in its own network.
const ownNetwork = "CARTON_OCI_E2E_OWN_NETWORK"

// ghcr is the address of ghcr.io in that network.
const ghcr = "140.82.112.33"

func TestReadmeRunsAsPrinted(t *testing.T) { runsAsPrinted(t, "README.md", 38) }

func TestGettingStartedRunsAsPrinted(t *testing.T) { runsAsPrinted(t, "docs/getting-started.md", 30) }

// runsAsPrinted runs the commands of a page, of which there are so many at least.
func runsAsPrinted(t *testing.T, page string, least int) {
	t.Helper()
	if os.Getenv(ownNetwork) == "" {
		inOwnNetwork(t)
		return
	}
	u := newUser(t).onPath(t)
	s := testregistry.Start(t, testregistry.Options{})
	u.env = append(u.env, "SSL_CERT_FILE="+serveAs(t, s, ghcr, "ghcr.io", "registry.example", "github.com"))
	serveAt(t, s, "127.0.0.1:5000")
	readmeFiles(t, u)
	hub := hubtest.New(t, hubtest.Config{})
	hub.Ref("org/m", "v1", hub.Commit("org/m", shards(1<<20, 0)...))
	u.env = append(u.env, "HF_ENDPOINT="+hub.URL)
	script, commands := pageScript(t, page)
	if commands < least {
		t.Errorf("got %d commands in %s, want %d and more", commands, page, least)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-euc", script)
	shell.Dir, shell.Env = u.dir, u.env
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// serveAt makes a registry answer without TLS at another address.
func serveAt(t *testing.T, s *testregistry.Server, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: forward(t, s)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
}

// forward passes requests on to a registry, under the name by which they asked.
func forward(t *testing.T, s *testregistry.Server) http.Handler {
	t.Helper()
	target, err := url.Parse("http://" + s.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}}
}

// inOwnNetwork runs the test that calls it again, in a network and a view of the
// file system of its own.
func inOwnNetwork(t *testing.T) {
	t.Helper()
	hosts := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, hosts, "127.0.0.1 localhost\n"+ghcr+" ghcr.io registry.example github.com\n")
	ip := testenv.Program(t, "ip")
	script := fmt.Sprintf("mount --bind %s /etc/hosts && %s link set lo up && %s address add %s/32 dev lo && exec %s -test.run='^%s$'",
		hosts, ip, ip, ghcr, os.Args[0], t.Name())
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append(os.Environ(), ownNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		testenv.NotChecked(t, "only root may make a network")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// serveAs makes a registry answer over TLS at another address under other names, and
// returns the file of the authority to trust.
func serveAs(t *testing.T, s *testregistry.Server, address string, names ...string) (caFile string) {
	t.Helper()
	config, caFile := testregistry.TLSFor(t, names...)
	listener, err := net.Listen("tcp", address+":443")
	if err != nil {
		t.Fatal(err)
	}
	hosts, releases := forward(t, s), released(t)
	server := &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "github.com" {
			releases.ServeHTTP(w, r)
			return
		}
		hosts.ServeHTTP(w, r)
	})}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { server.Close() })
	return caFile
}

// released serves the program as the first release's archive for Linux on amd64, which
// the README downloads, beside its checksum.
func released(t *testing.T) http.Handler {
	t.Helper()
	program, err := os.ReadFile(cartonOCI)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z, _ := gzip.NewWriterLevel(&archive, gzip.BestSpeed)
	w := tar.NewWriter(z)
	for name, content := range map[string][]byte{"carton-oci": program, "README.md": []byte("# carton-oci\n")} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	const name, at = "carton-oci_0.1.0_linux_amd64.tar.gz", "/carton-oci/carton-oci/releases/download/v0.1.0/"
	files := map[string][]byte{
		at + name:            archive.Bytes(),
		at + "checksums.txt": fmt.Appendf(nil, "%x  %s\n%064x  another.tar.gz\n", sha256.Sum256(archive.Bytes()), name, 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
}

// pageScript returns a script of the commands in a page's shell blocks that run
// carton-oci, or see to what it reads or wrote, and how many they are.
func pageScript(t *testing.T, page string) (script string, commands int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	fence := ""
	for i, line := range strings.Split(string(b), "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fence == "":
			fence = line
		case strings.HasPrefix(line, "```"):
			fence = ""
		case fence == "```" && isRun.MatchString(line):
			commands++
			command := strings.TrimPrefix(line, "$ ")
			fmt.Fprintf(&all, "printf '%%s\\n' %s:%d\n", page, i+1)
			if m := exitCode.FindStringSubmatch(line); m != nil {
				command = fmt.Sprintf("code=0; { %s\n} || code=$?; [ $code = %s ]", command, m[1])
			}
			all.WriteString(command + "\n")
		}
	}
	return all.String(), commands
}

// isRun are the lines that are run.
var isRun = regexp.MustCompile(`^(\$ |COSIGN_PASSWORD=\w+ |\w+=\$\()?carton-oci |^(eval|cmp|echo|curl|sha256sum) |^(version|file)=`)

// exitCode is how a comment behind a command names the code that it exits with.
var exitCode = regexp.MustCompile(`# exit code (\d):`)

// readmeFiles writes what the README's commands take for granted.
func readmeFiles(t *testing.T, u *user) {
	t.Helper()
	edited := newModel(map[string]string{"model/main.py": "def load(): pass\n"})
	edited.write(t, u.path("edited.carton"))
	u.must(t, "pull", "edited.carton", "--unpack", "edited")
	writeFile(t, u.path("edited/model/main.py"), "def load(): return 1\n")
	weights := string(modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "fc1.weight", DType: "F32", Shape: []int64{2, 2}, Data: make([]byte, 16)}))
	for name, content := range map[string]string{
		"weights.safetensors":     weights,
		"model/model.safetensors": weights,
		"model/config.json":       "{}",
		"model/main.py":           "def load(): pass\n",
		"model/README.md":         "# m\n",
		"model.pt":                string(modeltest.TorchScript("model")),
	} {
		if err := os.MkdirAll(filepath.Dir(u.path(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, u.path(name), content)
	}
	hub := filepath.Join(u.home, ".cache/huggingface/hub/models--org--m")
	commit := strings.Repeat("1a", 20)
	for name, content := range map[string]string{
		"refs/main": commit, "blobs/" + hexSum(weights): weights, "blobs/" + strings.Repeat("2b", 20): "{}",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(hub, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(hub, name), content)
	}
	snapshot := filepath.Join(hub, "snapshots", commit)
	if err := os.MkdirAll(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, blob := range map[string]string{"model.safetensors": hexSum(weights), "config.json": strings.Repeat("2b", 20)} {
		if err := os.Symlink("../../blobs/"+blob, filepath.Join(snapshot, name)); err != nil {
			t.Fatal(err)
		}
	}
}
