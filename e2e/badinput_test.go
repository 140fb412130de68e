package e2e

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	"github.com/carton-oci/carton-oci/internal/modeltest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// The promise: whatever is wrong, there is one line that says what, the exit
// code that scripts rely on, and nothing left behind.

func TestBadCartons(t *testing.T) {
	small := map[string]string{"model/weights.bin": random("w", 4096)}
	forged := func(t *testing.T, u *user) *model {
		t.Helper()
		m := newModel(small)
		hash := hexSum(m.files["model/weights.bin"])
		m.lie = func(manifest string) string {
			return strings.Replace(manifest, hash, hexSum("something else"), 1)
		}
		m.write(t, u.path("m.carton"))
		return m
	}
	future := func(t *testing.T, u *user) {
		t.Helper()
		m := newModel(small)
		m.files["carton.toml"] = strings.Replace(info, "spec_version = 1", "spec_version = 2", 1)
		m.write(t, u.path("m.carton"))
	}
	runBadCases(t, testregistry.Options{}, []badCase{
		{
			name: "truncated zip",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				whole, err := os.ReadFile(ours(t).file)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, u.path("m.carton"), string(whole[:len(whole)-1000]))
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badContent, want: []string{"push m.carton", "zip"},
		},
		{
			name: "zip with its front cut off",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				whole, err := os.ReadFile(ours(t).file)
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, u.path("m.carton"), string(whole[1000:]))
				return []string{"pull", "m.carton", "-o", "out.carton"}
			},
			code: badContent, want: []string{"m.carton"},
		},
		{
			name: "wrong hash, pushed",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				forged(t, u)
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badContent, want: []string{"push", "model/weights.bin", hexSum("something else")},
		},
		{
			name: "wrong hash, verified",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				forged(t, u)
				return []string{"verify", "m.carton"}
			},
			code: badContent, want: []string{"verify m.carton", "model/weights.bin", hexSum("something else")},
		},
		{
			name: "wrong hash, copied",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				forged(t, u)
				return []string{"pull", "m.carton", "-o", "out.carton"}
			},
			code: badContent, want: []string{"model/weights.bin", hexSum("something else")},
		},
		{
			name: "wrong hash, unpacked",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				forged(t, u)
				return []string{"pull", "m.carton", "--unpack", "out"}
			},
			code: badContent, want: []string{"model/weights.bin", hexSum("something else")},
		},
		{
			name: "missing member",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				m := newModel(small)
				m.lie = func(manifest string) string { return manifest + "model/zzz.bin=" + hexSum("zzz") + "\n" }
				m.write(t, u.path("m.carton"))
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badContent, want: []string{"push m.carton", "model/zzz.bin"},
		},
		{
			name: "unknown spec_version, pushed",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				future(t, u)
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badContent, want: []string{"push m.carton", "carton.toml", "spec_version", "2", "1"},
		},
		{
			name: "unknown spec_version, verified",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				future(t, u)
				return []string{"verify", "m.carton"}
			},
			code: badContent, want: []string{"verify m.carton", "spec_version"},
		},
		{
			name: "no carton at all",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				writeFile(t, u.path("m.carton"), "a text")
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badContent, want: []string{"push m.carton"},
		},
		{
			name: "no file at all",
			prepare: func(_ *testing.T, _ *user, s *testregistry.Server) []string {
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: badUsage, want: []string{"push m.carton"},
		},
		{
			name: "another model than wanted",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				newModel(small).write(t, u.path("m.carton"))
				return []string{"pull", "m.carton", "-o", "out.carton", "--model-hash", modeltest.CartonHash}
			},
			code: badContent, want: []string{newModel(small).hash(), modeltest.CartonHash},
		},
		{
			name: "output exists",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				newModel(small).write(t, u.path("m.carton"))
				writeFile(t, u.path("out.carton"), "somebody's only copy")
				return []string{"pull", "m.carton", "-o", "out.carton"}
			},
			code: failed, want: []string{"out.carton"}, hint: "--force",
		},
	})
}

func TestBadRegistries(t *testing.T) {
	small := newModel(map[string]string{"model/weights.bin": random("w", 4096)})
	pushSmall := func(t *testing.T, u *user, s *testregistry.Server) pushed {
		t.Helper()
		small.write(t, u.path("m.carton"))
		p := u.push(t, "m.carton", s.Host+"/org/m:1")
		if err := os.Remove(u.path("m.carton")); err != nil {
			t.Fatal(err)
		}
		return p
	}
	corrupted := func(path string) func(*testing.T, *user, *testregistry.Server) []string {
		return func(t *testing.T, u *user, s *testregistry.Server) []string {
			s.Corrupt(t, pushSmall(t, u, s).layer(t, path).Digest)
			return []string{"pull", s.Host + "/org/m:1", "-o", "out.carton"}
		}
	}
	runBadCases(t, testregistry.Options{}, []badCase{
		{
			name: "missing registry",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				small.write(t, u.path("m.carton"))
				return []string{"push", "m.carton", closedPort(t) + "/org/m:1"}
			},
			code: failed, want: []string{"push", "refused"},
		},
		{
			name: "missing tag",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				pushSmall(t, u, s)
				return []string{"pull", s.Host + "/org/m:2", "-o", "out.carton"}
			},
			code: notFound, want: []string{"pull", "/org/m:2", "404"},
		},
		{
			name: "missing repository",
			prepare: func(_ *testing.T, _ *user, s *testregistry.Server) []string {
				return []string{"pull", s.Host + "/org/none:1", "-o", "out.carton"}
			},
			code: notFound, want: []string{"pull", "/org/none:1", "404"},
		},
		{
			name:    "digest mismatch of a member",
			prepare: corrupted("model/weights.bin"),
			code:    badContent, want: []string{"pull", "model/weights.bin", hexSum(small.files["model/weights.bin"])},
		},
		{
			name:    "digest mismatch of MANIFEST",
			prepare: corrupted("MANIFEST"),
			code:    badContent, want: []string{"pull", small.hash()},
		},
		{
			name: "digest mismatch, unpacked",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				corrupted("model/weights.bin")(t, u, s)
				return []string{"pull", s.Host + "/org/m:1", "--unpack", "out"}
			},
			code: badContent, want: []string{"pull", "model/weights.bin"},
		},
		{
			name: "an artifact that is no carton",
			prepare: func(t *testing.T, _ *user, s *testregistry.Server) []string {
				pushForeign(t, s, "application/vnd.example.chart", "application/vnd.example.chart.layer")
				return []string{"pull", s.Host + "/org/foreign:1", "-o", "out.carton"}
			},
			code: failed, want: []string{"pull", "/org/foreign:1", "no model", "application/vnd.example.chart"}, hint: "oras",
		},
		{
			name: "a model that is no carton",
			prepare: func(t *testing.T, _ *user, s *testregistry.Server) []string {
				pushForeign(t, s, "application/vnd.cnai.model.manifest.v1+json", "application/vnd.cnai.model.weight.v1.raw")
				return []string{"pull", s.Host + "/org/foreign:1", "-o", "out.carton"}
			},
			code: failed, want: []string{"pull", "/org/foreign:1"}, hint: "--runner",
		},
		{
			name: "a tag that may not move",
			prepare: func(t *testing.T, u *user, s *testregistry.Server) []string {
				pushSmall(t, u, s)
				newModel(map[string]string{"model/weights.bin": "others"}).write(t, u.path("n.carton"))
				return []string{"push", "n.carton", s.Host + "/org/m:1", "--no-clobber"}
			},
			code: failed, want: []string{"push", "/org/m:1"},
		},
		{
			name: "no TLS where TLS is wanted",
			prepare: func(t *testing.T, u *user, _ *testregistry.Server) []string {
				small.write(t, u.path("m.carton"))
				s := testregistry.Start(t, testregistry.Options{TLS: true})
				return []string{"push", "m.carton", s.Host + "/org/m:1"}
			},
			code: failed, want: []string{"push", "certificate"}, hint: "--ca-file",
		},
	})
	wrong := func(command ...string) func(*testing.T, *user, *testregistry.Server) []string {
		return func(t *testing.T, u *user, s *testregistry.Server) []string {
			small.write(t, u.path("m.carton"))
			u.stdin = "byron\n"
			for i := range command {
				command[i] = strings.ReplaceAll(command[i], "HOST", s.Host)
			}
			return command
		}
	}
	for _, auth := range []testregistry.Auth{testregistry.Htpasswd, testregistry.Token} {
		runBadCases(t, testregistry.Options{Auth: auth, Users: users}, []badCase{
			{
				name:    "wrong password, login",
				prepare: wrong("login", "-u", "ada", "--password-stdin", "HOST"),
				code:    notAllowed, want: []string{"login"},
			},
			{
				name:    "wrong password, push",
				prepare: wrong("push", "-u", "ada", "--password-stdin", "m.carton", "HOST/org/m:1"),
				code:    notAllowed, want: []string{"push"},
			},
			{
				name:    "no password, push",
				prepare: wrong("push", "m.carton", "HOST/org/m:1"),
				code:    notAllowed, want: []string{"push"}, hint: "login",
			},
			{
				name:    "no password, pull",
				prepare: wrong("pull", "HOST/org/m:1", "-o", "out.carton"),
				code:    notAllowed, want: []string{"pull"}, hint: "login",
			},
		})
	}
}

// closedPort returns an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// pushForeign pushes an artifact that another program made as org/foreign:1.
func pushForeign(t *testing.T, s *testregistry.Server, artifactType, mediaType string) {
	t.Helper()
	repo, err := remote.NewRepository(s.Host + "/org/foreign")
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	blob := []byte(random("foreign", 1000))
	layer := content.NewDescriptorFromBytes(mediaType, blob)
	layer.Annotations = map[string]string{
		ocispec.AnnotationTitle:   "model.safetensors",
		"org.cnai.model.filepath": "model.safetensors",
	}
	if err := repo.Push(t.Context(), layer, bytes.NewReader(blob)); err != nil {
		t.Fatal(err)
	}
	desc, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, artifactType,
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Tag(t.Context(), desc, "1"); err != nil {
		t.Fatal(err)
	}
}
