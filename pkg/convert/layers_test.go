package convert

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// describeLayers is a line a layer: the media type's end, name and what it is.
func describeLayers(a *layout.Artifact) string {
	var b strings.Builder
	for _, l := range a.Layers {
		kind := strings.TrimPrefix(l.MediaType, "application/vnd.")
		fmt.Fprintf(&b, "%s %s", kind, l.Name)
		for _, k := range []string{AnnotationSymlink, AnnotationMembers} {
			if v := l.Annotations[k]; v != "" {
				fmt.Fprintf(&b, " %s", v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestRawLayers(t *testing.T) {
	_, _, a := pushed(t, kinds(), Options{})
	want := `cnai.model.weight.config.v1.raw MANIFEST
cnai.model.weight.config.v1.raw carton.toml
cnai.model.weight.config.v1.tar .bundles/weight.config-1.tar 4:0
cnai.model.code.v1.tar .bundles/code-1.tar 6:0
cnai.model.code.v1.tar .bundles/code-2.tar
cnai.model.doc.v1.raw elsewhere/file
cnai.model.doc.v1.raw misc/image.png
cnai.model.doc.v1.raw model/README.md
cnai.model.weight.config.v1.raw model/a=b & c<d>.json
cnai.model.weight.config.v1.raw model/blobs/0123
cnai.model.weight.config.v1.raw model/chain.json link.json
cnai.model.weight.config.v1.raw model/config.json
cnai.model.weight.config.v1.raw model/link.json config.json
cnai.model.code.v1.raw model/main.py
cnai.model.weight.v1.raw model/same.bin
cnai.model.weight.config.v1.raw model/snapshots/1/b.json ../../blobs/0123
cnai.model.weight.v1.raw model/snapshots/1/w.bin ../../weights-1.bin
cnai.model.weight.v1.raw model/weights-1.bin
cnai.model.weight.v1.raw model/weights-2.bin
cnai.model.weight.config.v1.raw model/ümläut.txt
cnai.model.dataset.v1.raw tensor_data/index.toml
`
	if diff := cmp.Diff(want, describeLayers(a)); diff != "" {
		t.Error(diff)
	}
}

func TestTarLayers(t *testing.T) {
	_, _, a := pushed(t, kinds(), Options{Layers: FormTar, MediaTypes: FamilyCNCF, Compress: CompressZstd, BundleBelow: 20})
	want := `cncf.model.weight.config.v1.raw MANIFEST
cncf.model.weight.config.v1.raw carton.toml
cncf.model.weight.config.v1.tar+zstd .bundles/weight.config-1.tar 4:0,7:8,10:3,19:9
cncf.model.weight.config.v1.tar .bundles/weight.config-2.tar 8:29
cncf.model.weight.config.v1.tar+zstd .bundles/weight.config-3.tar
cncf.model.weight.v1.tar .bundles/weight-1.tar 13:5000
cncf.model.weight.v1.tar .bundles/weight-2.tar 17:5000
cncf.model.weight.v1.tar .bundles/weight-3.tar 18:3000
cncf.model.weight.v1.tar .bundles/weight-4.tar
cncf.model.code.v1.tar+zstd .bundles/code-1.tar 6:0,12:8
cncf.model.code.v1.tar+zstd .bundles/code-2.tar
cncf.model.doc.v1.tar+zstd .bundles/doc-1.tar 2:18,8,5:10
cncf.model.dataset.v1.tar+zstd .bundles/dataset-1.tar 20:12
`
	if diff := cmp.Diff(want, describeLayers(a)); diff != "" {
		t.Error(diff)
	}
}

func TestDraftLayers(t *testing.T) {
	for _, form := range []Form{FormRaw, FormTar} {
		_, _, a := pushed(t, kinds(), Options{Layers: form, MediaTypes: FamilyDraft, Compress: CompressGzip, BundleBelow: 20})
		want := `cnai.model.weight.config.v1.tar .bundles/weight.config-1.tar 0:1666
cnai.model.weight.config.v1.tar .bundles/weight.config-2.tar 1:402
cnai.model.weight.config.v1.tar+gzip .bundles/weight.config-3.tar 4:0,7:8,10:3,19:9
cnai.model.weight.config.v1.tar .bundles/weight.config-4.tar 8:29
cnai.model.weight.config.v1.tar+gzip .bundles/weight.config-5.tar
`
		if form == FormTar {
			want += `cnai.model.weight.v1.tar .bundles/weight-1.tar 13:5000
cnai.model.weight.v1.tar .bundles/weight-2.tar 17:5000
cnai.model.weight.v1.tar .bundles/weight-3.tar 18:3000
cnai.model.weight.v1.tar .bundles/weight-4.tar
`
		}
		want += `cnai.model.code.v1.tar+gzip .bundles/code-1.tar 6:0,12:8
cnai.model.code.v1.tar+gzip .bundles/code-2.tar
cnai.model.doc.v1.tar+gzip .bundles/doc-1.tar 2:18,8,5:10
cnai.model.dataset.v1.tar+gzip .bundles/dataset-1.tar 20:12
`
		if form == FormRaw {
			want += `cnai.model.weight.v1 model/same.bin
cnai.model.weight.v1 model/snapshots/1/w.bin ../../weights-1.bin
cnai.model.weight.v1 model/weights-1.bin
cnai.model.weight.v1 model/weights-2.bin
`
		}
		if diff := cmp.Diff(want, describeLayers(a)); diff != "" {
			t.Errorf("%s: %s", form, diff)
		}
	}
}

func TestBundlesCloseBeforeTheyPassTheirSize(t *testing.T) {
	testenv.Heavy(t)
	files := map[string][]byte{}
	var opts []cartontest.Option
	for i := range 8 {
		path := fmt.Sprintf("misc/%d", i)
		files[path] = nil
		opts = append(opts, cartontest.WithContent(path, cartontest.Zeros([]int64{32 << 20, 32 << 20, 1, 65 << 20, 0, 64 << 20, 0, 1}[i])))
	}
	forms := formsOf(t, cartontest.New(nil, nil, opts...), Options{BundleBelow: 1 << 40})
	var got []string
	for i, l := range forms.Artifact.Layers {
		if strings.HasPrefix(l.Name, bundleFolder) {
			got = append(got, strings.Join(forms.Paths[i], " "))
		}
	}
	// What is larger than a bundle lies alone; an empty file fits into a full one.
	want := []string{"misc/0 misc/1", "misc/2", "misc/3", "misc/4 misc/5 misc/6", "misc/7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryMemberIsInOneLayer(t *testing.T) {
	for _, opts := range []Options{{}, {Layers: FormTar}, {MediaTypes: FamilyDraft}} {
		src := kinds()
		forms := formsOf(t, src, opts)
		if len(forms.Paths) != len(forms.Artifact.Layers) {
			t.Fatalf("got the paths of %d layers, want %d", len(forms.Paths), len(forms.Artifact.Layers))
		}
		seen := map[string]int{}
		for _, p := range slices.Concat(forms.Paths...) {
			seen[p]++
		}
		for _, e := range src.Manifest().Entries() {
			if seen[e.Path] != 1 {
				t.Errorf("%s is in %d layers", e.Path, seen[e.Path])
			}
		}
		if seen[carton.ManifestName] != 1 {
			t.Errorf("MANIFEST is in %d layers", seen[carton.ManifestName])
		}
	}
}

func TestAnnotationsOfLayers(t *testing.T) {
	_, _, a := pushed(t, kinds(), Options{MediaTypes: FamilyCNCF})
	for _, l := range a.Layers {
		if l.Name != "model/snapshots/1/w.bin" {
			continue
		}
		want := map[string]string{
			"org.cnai.model.filepath":           l.Name,
			"org.cncf.model.filepath":           l.Name,
			"org.opencontainers.image.title":    l.Name,
			"run.carton.symlink":                "../../weights-1.bin",
			"org.cncf.model.file.metadata+json": `{"name":"w.bin","mode":420,"uid":0,"gid":0,"size":5000,"mtime":"1980-01-01T00:00:00Z","typeflag":48}`,
		}
		if diff := cmp.Diff(want, l.Annotations); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("the layer is not there")
}

func TestAnnotationsOfTheImageManifest(t *testing.T) {
	src := kinds()
	_, _, a := pushed(t, src, Options{
		Created:     time.Date(2024, 5, 6, 9, 8, 7, 6, time.FixedZone("", 7200)),
		Annotations: map[string]string{"org.example": "<&>", "org.opencontainers.image.url": "https://wins.example"},
	})
	m, err := layout.ParseManifest(a.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"run.carton.mapping":                   "1",
		"run.carton.model.hash":                src.Manifest().ModelHash(),
		"run.carton.spec-version":              "1",
		"run.carton.runner.name":               "python",
		"run.carton.runner.framework-version":  ">=3.10, <3.13",
		"run.carton.runner.compat-version":     "1",
		"run.carton.platforms":                 "x86_64-unknown-linux-gnu,aarch64-apple-darwin",
		"org.opencontainers.image.title":       "Café <3 & more",
		"org.opencontainers.image.description": "A model for tests",
		"org.opencontainers.image.licenses":    "Apache-2.0 OR MIT",
		"org.opencontainers.image.source":      "https://example.com/repo",
		"org.opencontainers.image.url":         "https://wins.example",
		"org.opencontainers.image.created":     "2024-05-06T07:08:07Z",
		"org.example":                          "<&>",
	}
	if diff := cmp.Diff(want, m.Annotations); diff != "" {
		t.Error(diff)
	}
}

// Layers open again at any offset, whatever they are made of.
func TestLayersOpenAtAnyOffset(t *testing.T) {
	for _, opts := range []Options{{}, {Layers: FormTar}, {BundleBelow: 100, Compress: CompressZstd}, {BundleBelow: 100, Compress: CompressGzip}} {
		s, _, a := pushed(t, kinds(), opts)
		for _, l := range append(slices.Clone(a.Layers), a.Config) {
			want := s.blobs[l.Digest]
			for _, off := range []int64{1, l.Size / 2, l.Size - 1, l.Size} {
				r, err := l.Open(t.Context(), off)
				if err != nil {
					t.Fatalf("%s at %d: %v", l.Name, off, err)
				}
				got, err := io.ReadAll(r)
				if err != nil || !bytes.Equal(got, want[off:]) {
					t.Errorf("%s at %d: got %d bytes, %v, want %d", l.Name, off, len(got), err, len(want)-int(off))
				}
				r.Close()
			}
		}
	}
}

func TestLongestChainOfSymlinks(t *testing.T) {
	chain := func(n int) (map[string][]byte, map[string]string) {
		symlinks := map[string]string{}
		for i := range n {
			symlinks[fmt.Sprintf("model/%02d.py", i)] = fmt.Sprintf("%02d.py", i+1)
		}
		return map[string][]byte{fmt.Sprintf("model/%02d.py", n): []byte("end")}, symlinks
	}
	files, symlinks := chain(carton.MaxSymlinks - 1)
	for _, opts := range []Options{{}, {Layers: FormTar}} {
		s, desc, _ := pushed(t, cartontest.New(files, symlinks), opts)
		if got := content(t, opened(t, s, desc, OpenOptions{}), "model/00.py"); got != "end" {
			t.Errorf("got %q", got)
		}
	}
}
