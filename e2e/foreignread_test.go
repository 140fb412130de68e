package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: models that other programs pushed are pulled, once somebody says
// which runner loads them, whatever form they have; and what is no model, or is
// built to harm, is refused by name.

// foreignFiles are a model's, as a hub has them. Two have the same content.
var foreignFiles = map[string]string{
	"config.json":                      `{"architectures":["Tiny"]}`,
	"model-00001-of-00002.safetensors": random("one", 64<<10),
	"model-00002-of-00002.safetensors": random("two", 64<<10),
	"original/copy.safetensors":        random("one", 64<<10),
	"tokenizer.json":                   random("tokens", 9<<10),
	"README.md":                        "# Tiny\n",
	"modeling_tiny.py":                 "class Tiny: pass\n",
}

// kindOf is the category that modctl has for a file.
func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".json"):
		return "weight.config"
	case strings.HasSuffix(name, ".md"):
		return "doc"
	case strings.HasSuffix(name, ".py"):
		return "code"
	}
	return "weight"
}

// foreignForms are the same model as different programs store it.
func foreignForms() map[string]artifact {
	files := func(layer func(name, data string) artifactLayer) []artifactLayer {
		var layers []artifactLayer
		for name, data := range foreignFiles { // in any order, as they come
			layers = append(layers, layer(name, data))
		}
		return layers
	}
	forms := map[string]artifact{}
	for _, f := range []family{"cnai", "cncf"} {
		raw := f.artifact(files(func(name, data string) artifactLayer { return f.raw(kindOf(name), name, data) })...)
		forms[string(f)+" raw"] = raw
		for _, compression := range []string{"", "gzip", "zstd"} {
			forms[strings.TrimSpace(string(f)+" tar "+compression)] = f.artifact(files(func(name, data string) artifactLayer {
				return f.tar(kindOf(name), name, data, compression)
			})...)
		}
		raw.config = foreignConfig(raw.layers, "diff_ids")
		forms[string(f)+" with diff_ids"] = raw
		raw.artifactType = ""
		forms[string(f)+" by its config"] = raw
	}
	const f = family("cnai")
	forms["first draft"] = f.artifact(files(func(name, data string) artifactLayer {
		if kindOf(name) != "weight" {
			return f.tar(kindOf(name), name, data, "")
		}
		l := f.raw("weight", name, data)
		l.mediaType = strings.TrimSuffix(l.mediaType, ".raw")
		return l
	})...)
	forms["both families"] = family("cncf").artifact(files(func(name, data string) artifactLayer {
		switch kindOf(name) {
		case "weight":
			return f.raw("weight", name, data)
		case "doc":
			return family("cncf").tar("doc", name, data, "gzip")
		}
		return family("cncf").raw(kindOf(name), name, data)
	})...)
	whole := artifactLayer{mediaType: "application/vnd.cnai.model.weight.v1.tar", data: hostTar(foreignFiles)}
	forms["one tar without a name"] = f.artifact(whole)
	whole.data += strings.Repeat("\x00", 10240-len(whole.data)%10240) // as GNU tar fills its last record
	forms["one tar by GNU tar"] = f.artifact(whole)
	return forms
}

func TestModelsOfOtherProgramsAreWrapped(t *testing.T) {
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	want := map[string]string{"tensor_data/index.toml": "tensor = []\n"} // which the format's loader wants
	for name, content := range foreignFiles {
		want["model/"+name] = content
	}
	hash := ""
	for name, a := range foreignForms() {
		t.Run(name, func(t *testing.T) {
			ref := strings.ReplaceAll(strings.ToLower("org/"+name), " ", "-") + ":1"
			a.put(t, s, ref)
			checkError(t, u.run(t, "pull", s.Host+"/"+ref, "-o", "refused.carton"),
				badCase{code: failed, want: []string{"no carton"}, hint: "--runner"})

			p := u.pull(t, s.Host+"/"+ref, "--runner", "python", "--framework-version", "=3.11", "--opt", "entrypoint_package=main", "--opt", "entrypoint_fn=load", "-o", "m.carton", "--force")
			z := readZip(t, u.path("m.carton"))
			toml := z.files["carton.toml"]
			delete(z.files, "carton.toml")
			same(t, &z.model, &model{files: want})
			for _, line := range []string{`model_name = "tiny"`, `license = "MIT"`, `runner_name = "python"`, `required_framework_version = "=3.11"`} {
				if !strings.Contains(toml, line+"\n") {
					t.Errorf("carton.toml does not say %s:\n%s", line, toml)
				}
			}
			if hash == "" {
				hash = p.ModelHash
			}
			if p.ModelHash != hash || hexSum(z.manifest) != hash {
				t.Errorf("got model hash %s, want %s as in every other form", p.ModelHash, hash)
			}
			u.must(t, "verify", "m.carton")
			if got := u.push(t, "m.carton", s.Host+"/org/again:1").ModelHash; got != hash {
				t.Errorf("pushed again: got model hash %s, want %s", got, hash)
			}
		})
	}
}

// A carton that somebody pushed with another program keeps its members; its
// model hash is the author's only if MANIFEST was pushed with it.
func TestCartonsPushedByOtherPrograms(t *testing.T) {
	m := newModel(map[string]string{"model/weights.bin": random("weights", 64<<10), "model/config.json": "{}", "misc/README.md": "# A model\n", "tensor_data/index.toml": "tensor = []\n"})
	for _, f := range []family{"cnai", "cncf"} {
		for _, manifest := range []bool{true, false} {
			name := string(f) + " with MANIFEST"
			if !manifest {
				name = string(f) + " without MANIFEST"
			}
			t.Run(name, func(t *testing.T) {
				u := newUser(t)
				s := testregistry.Start(t, testregistry.Options{})
				files := maps.Clone(m.files)
				if manifest {
					files["MANIFEST"] = m.manifest()
				}
				var layers []artifactLayer
				for name, data := range files {
					if len(layers)%2 == 0 {
						layers = append(layers, f.raw("weight", name, data))
					} else {
						layers = append(layers, f.tar("weight", name, data, ""))
					}
				}
				f.artifact(layers...).put(t, s, "org/m:1")
				r := u.must(t, "pull", s.Host+"/org/m:1", "-o", "m.carton")
				if said := strings.Contains(r.stderr, "not its author's"); said == manifest {
					t.Errorf("says that the model hash is not the author's: %t, want %t\n%s", said, !manifest, r.stderr)
				}
				z := readZip(t, u.path("m.carton"))
				same(t, &z.model, m)
				if z.manifest != m.manifest() {
					t.Errorf("got MANIFEST\n%swant\n%s", z.manifest, m.manifest())
				}
			})
		}
	}
}

func TestForeignArtifactsAreRefused(t *testing.T) {
	const f = family("cnai")
	good := f.raw("weight", "model.safetensors", "weights")
	changed := func(change func(*artifactLayer)) artifact {
		l := good
		l.annotations = maps.Clone(l.annotations)
		change(&l)
		return f.artifact(good, l)
	}
	cases := map[string]struct {
		artifact artifact
		want     []string
		hint     string
	}{
		"a type that nobody has": {changed(func(l *artifactLayer) { l.mediaType += ".aes" }), []string{"weight.v1.raw.aes"}, ""},
		"a path that leads out": {
			changed(func(l *artifactLayer) { l.annotations["org.cnai.model.filepath"] = "../../evil" }), []string{"../../evil"}, "",
		},
		"a tar that leads out": {
			f.artifact(good, artifactLayer{mediaType: "application/vnd.cnai.model.code.v1.tar", data: hostTar(map[string]string{"../evil": "x"})}),
			[]string{"../evil"},
			"",
		},
		"two paths": {
			changed(func(l *artifactLayer) { l.annotations["org.cncf.model.filepath"] = "another" }), []string{"another"}, "",
		},
		"no path":      {changed(func(l *artifactLayer) { l.annotations = nil }), []string{"name"}, ""},
		"a path twice": {changed(func(*artifactLayer) {}), []string{"model.safetensors"}, ""},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			refuseToPull(t, tt.artifact, badCase{code: badContent, want: tt.want, hint: tt.hint})
		})
	}
}

// An artifact of another kind is not broken: it is called by its name, with what
// helps.
func TestModelsOfAnotherKindAreNamed(t *testing.T) {
	docker := artifact{
		configType: "application/vnd.docker.ai.model.config.v0.1+json", config: "{}",
		layers: []artifactLayer{{mediaType: "application/vnd.docker.ai.gguf.v3", data: "gguf"}},
	}
	refuseToPull(t, docker, badCase{code: failed, want: []string{"Docker Model Runner"}, hint: "docker model pull"})
}

// refuseToPull wants a pull of an artifact, to a file and to a folder, to end with
// an error and to leave nothing.
func refuseToPull(t *testing.T, a artifact, want badCase) {
	t.Helper()
	u := newUser(t)
	s := testregistry.Start(t, testregistry.Options{})
	a.put(t, s, "org/m:1")
	before := snapshot(t, u.dir, u.tmp, u.home)
	for _, args := range [][]string{{"-o", "m.carton"}, {"--unpack", "tree"}} {
		args = append([]string{"pull", s.Host + "/org/m:1", "--runner", "torchscript", "--framework-version", "=2.0.1"}, args...)
		checkError(t, u.run(t, args...), want)
	}
	compare(t, "left", snapshot(t, u.dir, u.tmp, u.home), before)
}
