package convert

import (
	"strings"
	"testing"
)

func TestMediaTypesAreReadAsTheyAreWritten(t *testing.T) {
	written := 0
	for family, types := range families {
		for _, c := range categories {
			for _, f := range []format{formatRaw, formatTar, formatTarGzip, formatTarZstd} {
				if f == formatRaw && !types.canBeRaw(c) {
					continue
				}
				name := types.of(c, f)
				written++
				gotC, gotF, ok := parseMediaType(name)
				if !ok || gotC != c || gotF != f {
					t.Errorf("%s: %s: got %s, %s, %v, want %s, %s", family, name, gotC, gotF, ok, c, f)
				}
			}
		}
	}
	if want := 20 + 20 + 16; written != want {
		t.Errorf("tried %d types, want %d", written, want)
	}
}

func TestMediaTypesOfOthers(t *testing.T) {
	for _, name := range []string{
		"application/vnd.cnai.model.weight.config.v1",
		"application/vnd.cncf.model.weight.v1",
		"application/vnd.cncf.model.dataset.v1",
	} {
		if _, f, ok := parseMediaType(name); !ok || f != formatRaw {
			t.Errorf("the bare type %s: got %s, %v, want raw", name, f, ok)
		}
	}
	for _, name := range []string{
		"",
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.cnai.model.weight.v2.raw",
		"application/vnd.cnai.model.weight.v1.raw+zstd",
		"application/vnd.cnai.model.weight.v1.tar+lz4",
		"application/vnd.cnai.model.weight.v1.tar+encrypted",
		"application/vnd.cnai.model.weight.v1.",
		"application/vnd.cnai.model.weight.v1tar",
		"application/vnd.cnai.model.weights.v1.tar",
		"application/vnd.cnai.model.config.v1+json",
		"application/vnd.docker.ai.gguf.v3",
		strings.ToUpper("application/vnd.cnai.model.weight.v1.raw"),
	} {
		if c, f, ok := parseMediaType(name); ok {
			t.Errorf("%q: got %s, %s, want none", name, c, f)
		}
	}
}

// The draft names six types of layers that are not compressed, and no other.
// https://github.com/modelpack/model-spec, first draft: "layers array of objects"
func TestDraftHasOnlyTheDraftsTypes(t *testing.T) {
	const base = "application/vnd.cnai.model."
	listed := map[string]bool{base + "weight.v1": true}
	for _, c := range categories {
		for _, suffix := range []string{"", "+gzip", "+zstd"} {
			listed[base+string(c)+".v1.tar"+suffix] = true
		}
	}
	draft := families[FamilyDraft]
	for _, c := range categories {
		for _, f := range []format{formatTar, formatTarGzip, formatTarZstd} {
			if name := draft.of(c, f); !listed[name] {
				t.Errorf("%s is not in the draft", name)
			}
		}
		if draft.canBeRaw(c) != (c == categoryWeight) {
			t.Errorf("raw %s: got %v", c, draft.canBeRaw(c))
		}
	}
	if name := draft.of(categoryWeight, formatRaw); !listed[name] {
		t.Errorf("%s is not in the draft", name)
	}
}
