package main

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/registry"
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

// What is offered of commands, flags, values, files, places and what is in them.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	reg := registrytest.New(t, registrytest.Config{})
	host := reg.Host
	c, err := client.New(client.Options{Registry: registry.Options{PlainHTTP: true}})
	if err != nil {
		t.Fatal(err)
	}
	src := cartontest.New(map[string][]byte{
		carton.InfoName: []byte("spec_version = 1\n[runner]\nrunner_name = \"noop\"\nrequired_framework_version = \"*\"\n"),
		"model/a.bin":   []byte("1"), "model/a b.txt": []byte("2"), "model/sub/config.json": []byte("3"), "misc/x": []byte("4"),
		carton.IndexName: []byte("tensor = []\n"),
	}, nil)
	if err := carton.Assemble(t.Context(), "m.carton", src, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{host + "/org/m:v1.0,v1.1,latest", "oci:lay:stable", "m.oci.tar:v2"} {
		if _, err := c.Push(t.Context(), "m.carton", to, client.PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	weights := modeltest.Safetensors(t, nil,
		modeltest.Tensor{Name: "fc1.weight", DType: "F32", Shape: []int64{2, 2}, Data: make([]byte, 16)},
		modeltest.Tensor{Name: "fc2.weight", DType: "F32", Shape: []int64{3}, Data: make([]byte, 12)})
	auth := `{"auths": {"ghcr.io": {"auth": "YTpi"}, "https://registry.example/v2/": {}}}`
	for name, content := range map[string][]byte{"w.safetensors": weights, "auth.json": []byte(auth)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const models = ":files .carton .oci.tar .safetensors .gguf "
	for line, want := range map[string]string{
		"=pu":                                   "push\tsend a carton to a registry or an image layout\npull\tmake a carton, or a folder, of what is in a registry\n",
		"=dif help":                             "diff\tsay in what two cartons differ\n",
		"=--fra pull":                           "--framework-version\twith --runner: which versions of its framework: REQ, such as =2.0.1 or >=1.0, <2.0\n",
		"=j pull --format":                      "json\n",
		"=--format=j pull":                      "--format=json\n",
		"=no pack --runner":                     "noop\tanything; it runs nothing: storage only\n",
		"= pull --ca-file":                      ":files\n",
		"= pull --unpack":                       ":dirs\n",
		"=po completion":                        "powershell\n",
		"=./ ls":                                models + "…",
		"=m cat m.carton":                       "misc/\nmodel/\n",
		"=model/ cat m.carton":                  "model/a b.txt\nmodel/a.bin\nmodel/sub/\n",
		"=model/s cat HOST/org/m:v1.0":          "model/sub/\n:nospace\n",
		"=config cat HOST/org/m:v1.0":           "",
		"=fc tensors w.safetensors":             "fc1.weight\tF32 [2, 2]\nfc2.weight\tF32 [3]\n",
		"=oci:l ls":                             "oci:lay:\tan image layout\n:nospace\n",
		"=oci:l tags":                           "oci:lay:\tan image layout\n:nospace\n",
		"=oci:lay: ls":                          "oci:lay:stable\n",
		"=./m.oci.tar: ls":                      "./m.oci.tar:v2\n",
		"=HOST/org/m:v pull":                    "HOST/org/m:v1.0\nHOST/org/m:v1.1\n",
		"=HOST/org/m:v cp oci:lay:stable":       "HOST/org/m:v1.0\nHOST/org/m:v1.1\n",
		"=HOST/org/m:v1.0,l push m.carton":      "HOST/org/m:v1.0,latest\n",
		"=HOST/none:v pull":                     "",
		"=l tag HOST/org/m:v1.0":                "latest\n",
		"=v1 tag HOST/org/m:v1.0 latest":        "v1.0\nv1.1\n",
		"= attach HOST/org/m:v1.0":              ":files\n",
		"=reg pull --registry-config auth.json": "registry.example/\tlogged in\n:nospace\n" + models + "…",
		"= logout --registry-config auth.json":  "ghcr.io\tlogged in\nregistry.example\tlogged in\n",
		"= nothing":                             "",
		"=x cat missing.carton":                 "",
		"= cat m.carton a b c":                  "",
		"=--conc ls --retries many":             "--concurrency\tat most N transfers at once (default 8)\n",
	} {
		words := strings.Split(strings.ReplaceAll(line, "HOST", host), " ")
		got := strings.ReplaceAll(completed(t, words...), host, "HOST")
		if head, ok := strings.CutSuffix(want, "…"); got != want && (!ok || !strings.HasPrefix(got, head)) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// A registry that takes the question and never answers holds nobody up.
func TestCompletionOfASilentRegistry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer func(wait time.Duration) { completionWait = wait }(completionWait)
	completionWait = patience
	start := time.Now()
	if got := completed(t, "="+l.Addr().String()+"/org/m:", "pull"); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if took := time.Since(start); patience > 5*time.Second || took < patience || took > time.Minute {
		t.Errorf("took %s, want about %s, and no longer than somebody waits", took, patience)
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
