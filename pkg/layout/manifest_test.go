package layout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	typeConfig = "application/vnd.example.config.v1+json"
	typeLayer  = "application/vnd.example.layer.v1.raw"
)

// descOf describes b.
func descOf(mediaType string, b []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}

// blobLayer is a layer of b's bytes.
func blobLayer(name string, b []byte) layout.Layer {
	return layout.Layer{Descriptor: descOf(typeLayer, b), Name: name, Open: opens(b)}
}

func opens(b []byte) layout.Opener {
	return func(_ context.Context, off int64) (io.ReadCloser, error) {
		return nopCloser{bytes.NewReader(b[off:])}, nil
	}
}

func artifact(t testing.TB, spec layout.ArtifactSpec) *layout.Artifact {
	t.Helper()
	a, err := layout.NewArtifact(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func configLayer() layout.Layer {
	l := blobLayer("config", []byte("{}"))
	l.MediaType = typeConfig
	return l
}

func TestArtifactBytesArePinned(t *testing.T) {
	weight := blobLayer("model/w", []byte("weight"))
	weight.Annotations = map[string]string{"org.opencontainers.image.title": "model/w", "a": "<&>"}
	cases := []struct {
		name string
		spec layout.ArtifactSpec
		want string
	}{
		{"least", layout.ArtifactSpec{Config: configLayer()}, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
			`"config":{"mediaType":"application/vnd.example.config.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}`},
		{"all", layout.ArtifactSpec{
			ArtifactType: "application/vnd.example.v1", Config: configLayer(),
			Layers:      []layout.Layer{weight, blobLayer("model/w", []byte("weight"))},
			Subject:     &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 1},
			Annotations: map[string]string{"z": "é\u2028", "b": "2", "a": "\"\\\n"},
		}, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/vnd.example.v1",` +
			`"config":{"mediaType":"application/vnd.example.config.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},` +
			`"layers":[{"mediaType":"application/vnd.example.layer.v1.raw","digest":"sha256:9a1d6b0c4d1d0a8f","size":6,"annotations":{"a":"\u003c\u0026\u003e","org.opencontainers.image.title":"model/w"}},` +
			`{"mediaType":"application/vnd.example.layer.v1.raw","digest":"sha256:9a1d6b0c4d1d0a8f","size":6}],` +
			`"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","size":1},` +
			`"annotations":{"a":"\"\\\n","b":"2","z":"é\u2028"}}`},
	}
	for _, c := range cases {
		a := artifact(t, c.spec)
		want := strings.ReplaceAll(c.want, "sha256:9a1d6b0c4d1d0a8f", string(digest.FromString("weight")))
		if diff := cmp.Diff(want, string(a.Manifest)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		// CRI-O finds an artifact by the digest of what it makes of it so.
		var again ocispec.Manifest
		if err := json.Unmarshal(a.Manifest, &again); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(&again); err != nil || string(b) != string(a.Manifest) {
			t.Errorf("%s: encoding/json writes %s, %v", c.name, b, err)
		}
		wantDesc := descOf(ocispec.MediaTypeImageManifest, a.Manifest)
		wantDesc.ArtifactType = c.spec.ArtifactType
		if diff := cmp.Diff(wantDesc, a.Descriptor); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		m, err := layout.ParseManifest(a.Manifest)
		if err != nil {
			t.Errorf("%s: does not read its own: %v", c.name, err)
		} else if len(m.Layers) != len(c.spec.Layers) || m.ArtifactType != c.spec.ArtifactType {
			t.Errorf("%s: got %+v", c.name, m)
		}
	}
}

func TestNewArtifactRefuses(t *testing.T) {
	good := blobLayer("w", []byte("weight"))
	edit := func(f func(*layout.Layer)) layout.Layer {
		l := good
		f(&l)
		return l
	}
	many := make([]layout.Layer, layout.MaxLayers+1)
	for i := range many {
		many[i] = good
	}
	cases := map[string]struct {
		spec layout.ArtifactSpec
		want error
	}{
		"no config":          {layout.ArtifactSpec{}, layout.ErrFormat},
		"unknown size":       {layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{edit(func(l *layout.Layer) { l.Size = -1 })}}, layout.ErrFormat},
		"no media type":      {layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{edit(func(l *layout.Layer) { l.MediaType = "" })}}, layout.ErrFormat},
		"two sizes":          {layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{good, edit(func(l *layout.Layer) { l.Size++ })}}, layout.ErrFormat},
		"not UTF-8":          {layout.ArtifactSpec{Config: configLayer(), Annotations: map[string]string{"a": "\xff"}}, layout.ErrFormat},
		"layer not UTF-8":    {layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{edit(func(l *layout.Layer) { l.Annotations = map[string]string{"\xff": ""} })}}, layout.ErrFormat},
		"too many layers":    {layout.ArtifactSpec{Config: configLayer(), Layers: many}, layout.ErrLimit},
		"too large":          {layout.ArtifactSpec{Config: configLayer(), Annotations: map[string]string{"a": strings.Repeat("x", layout.MaxManifestBytes)}}, layout.ErrLimit},
		"bad subject":        {layout.ArtifactSpec{Config: configLayer(), Subject: &ocispec.Descriptor{}}, layout.ErrFormat},
		"data of other size": {layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{edit(func(l *layout.Layer) { l.Data = []byte("w") })}}, layout.ErrDigest},
	}
	for name, c := range cases {
		if _, err := layout.NewArtifact(c.spec); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	// good is a whole image manifest; the cases below change one thing of it.
	good = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"t",` +
		`"config":{"mediaType":"c","digest":"sha256:` + hexA + `","size":2},` +
		`"layers":[{"mediaType":"l","digest":"sha256:` + hexB + `","size":6,"annotations":{"a":"b"}}],"annotations":{"k":"v"}}`
)

func goodManifests(t testing.TB) []string {
	t.Helper()
	list := []string{
		good,
		" \n" + good + "\n\t ",
		replace(good, `"mediaType":"application/vnd.oci.image.manifest.v1+json",`, ``),
		replace(good, `application/vnd.oci.image.manifest.v1+json`, `application/vnd.docker.distribution.manifest.v2+json`),
		replace(good, `"annotations":{"k":"v"}`, `"annotations":{"k":"v","K":"v","mediaType":"x","MediaType":"y"}`),
		replace(good, `"annotations":{"k":"v"}`, `"annotations":null`),
		replace(good, `"size":6`, `"size":0`),
		replace(good, `"size":6`, `"size":9007199254740991`),
		replace(good, `{"schemaVersion":2`, `{"unknown":{"a":[1,{"A":2,"a":3}]},"schemaVersion":2`),
		replace(good, `"layers":[`, `"layers":[{"mediaType":"l","digest":"sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae","size":3,"data":"Zm9v"},`),
		replace(good, `"layers":[`, `"layers":[{"mediaType":"other","digest":"sha256:`+hexB+`","size":6},`),
	}
	return list
}

// replace wants old to be there.
func replace(s, old, with string) string {
	if !strings.Contains(s, old) {
		panic("no " + old)
	}
	return strings.Replace(s, old, with, 1)
}

func TestParseManifestReads(t *testing.T) {
	for _, s := range goodManifests(t) {
		m, err := layout.ParseManifest([]byte(s))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		var want ocispec.Manifest
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, m); diff != "" {
			t.Errorf("%s: %s", s, diff)
		}
	}
}

var badManifests = []struct {
	name, json string
	kind       error
	text       string
}{
	{"nothing", ``, layout.ErrFormat, "not JSON"},
	{"no object", `[]`, layout.ErrFormat, "not a JSON object"},
	{"a string", `"x"`, layout.ErrFormat, "not a JSON object"},
	{"HTML", `<html>`, layout.ErrFormat, "not JSON"},
	{"cut short", good[:len(good)-1], layout.ErrFormat, "not JSON"},
	{"trailing data", good + `{}`, layout.ErrFormat, "behind the JSON object"},
	{"trailing brace", good + `}`, layout.ErrFormat, "behind the JSON object"},
	{"not UTF-8", replace(good, `"v"`, "\"\xff\""), layout.ErrFormat, "not UTF-8"},
	{"byte order mark", "\ufeff" + good, layout.ErrFormat, "not JSON"},
	{"key twice", replace(good, `"schemaVersion":2`, `"schemaVersion":2,"schemaVersion":2`), layout.ErrFormat, "key schemaVersion twice"},
	{"key twice by escape", replace(good, `"schemaVersion":2`, `"schemaVersion":2,"schema\u0056ersion":2`), layout.ErrFormat, "key schemaVersion twice"},
	{"layers twice", replace(good, `"layers":`, `"layers":[],"layers":`), layout.ErrFormat, "key layers twice"},
	{"digest twice", replace(good, `"size":6`, `"size":6,"digest":"sha256:`+hexA+`"`), layout.ErrFormat, "key digest twice"},
	{"annotation twice", replace(good, `"k":"v"`, `"k":"v","k":"w"`), layout.ErrFormat, "key k twice"},
	{"key twice in the unknown", replace(good, `"artifactType":"t"`, `"x":[{"a":1,"a":2}]`), layout.ErrFormat, "key a twice"},
	{"MediaType", replace(good, `"mediaType":"application`, `"MediaType":"application`), layout.ErrFormat, "key MediaType, want mediaType"},
	{"Size in a layer", replace(good, `"size":6`, `"size":6,"Size":7`), layout.ErrFormat, "key Size, want size"},
	{"Layers beside layers", replace(good, `"layers":`, `"Layers":[],"layers":`), layout.ErrFormat, "key Layers, want layers"},
	{"Manifests", replace(good, `"layers":`, `"Manifests":[],"layers":`), layout.ErrFormat, "key Manifests, want manifests"},
	{"long s folds to s", replace(good, `"size":6`, `"ſize":6`), layout.ErrFormat, "want size"},
	{"too deep", replace(good, `"k":"v"`, `"k":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)), layout.ErrFormat, "nested deeper"},
	{"objects too deep", replace(good, `"k":"v"`, `"k":`+strings.Repeat(`{"a":`, 40)+"1"+strings.Repeat("}", 40)), layout.ErrFormat, "nested deeper"},
	{"manifests and layers", replace(good, `"layers":`, `"manifests":[],"layers":`), layout.ErrFormat, "both manifests and layers"},
	{"index", `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`, layout.ErrFormat, "index of image manifests"},
	{"index without a type", `{"schemaVersion":2,"manifests":[]}`, layout.ErrFormat, "index of image manifests"},
	{"index by type only", replace(good, `image.manifest.v1`, `image.index.v1`), layout.ErrFormat, "index of image manifests"},
	{"Docker list", `{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[]}`, layout.ErrFormat, "index of image manifests"},
	{"schema 1", `{"schemaVersion":1,"name":"x","tag":"1","fsLayers":[],"history":[]}`, layout.ErrFormat, "schema 1"},
	{"schema 1 by number", replace(good, `"schemaVersion":2`, `"schemaVersion":1`), layout.ErrFormat, "schema 1"},
	{"schema 3", replace(good, `"schemaVersion":2`, `"schemaVersion":3`), layout.ErrFormat, "schemaVersion 3, want 2"},
	{"schema text", replace(good, `"schemaVersion":2`, `"schemaVersion":"2"`), layout.ErrFormat, "want 2"},
	{"no schema", replace(good, `"schemaVersion":2,`, ``), layout.ErrFormat, "no schemaVersion, want 2"},
	{"another type", replace(good, `application/vnd.oci.image.manifest.v1+json`, `text/html`), layout.ErrFormat, "media type text/html"},
	{"type is no text", replace(good, `"application/vnd.oci.image.manifest.v1+json"`, `7`), layout.ErrFormat, "cannot unmarshal"},
	{"no config", replace(good, `"config":{"mediaType":"c","digest":"sha256:`+hexA+`","size":2},`, ``), layout.ErrFormat, "no media type"},
	{"config null", replace(good, `{"mediaType":"c","digest":"sha256:`+hexA+`","size":2}`, `null`), layout.ErrFormat, "no media type"},
	{"config too large", replace(good, `"size":2`, `"size":4194305`), layout.ErrLimit, "config is 4194305 bytes"},
	{"no layers", replace(good, `"layers"`, `"others"`), layout.ErrFormat, "no layers"},
	{"layers null", `{"schemaVersion":2,"config":{"mediaType":"c","digest":"sha256:` + hexA + `","size":2},"layers":null}`, layout.ErrFormat, "no layers"},
	{"layers an object", `{"schemaVersion":2,"config":{"mediaType":"c","digest":"sha256:` + hexA + `","size":2},"layers":{}}`, layout.ErrFormat, "cannot unmarshal"},
	{"negative size", replace(good, `"size":6`, `"size":-6`), layout.ErrFormat, "size -6"},
	{"size over 2^53", replace(good, `"size":6`, `"size":9007199254740992`), layout.ErrFormat, "size 9007199254740992"},
	{"size of 2^62", replace(good, `"size":6`, `"size":4611686018427387904`), layout.ErrFormat, "2^53"},
	{"size over 2^64", replace(good, `"size":6`, `"size":46116860184273879040`), layout.ErrFormat, "cannot unmarshal"},
	{"size a fraction", replace(good, `"size":6`, `"size":6.5`), layout.ErrFormat, "cannot unmarshal"},
	{"size a text", replace(good, `"size":6`, `"size":"6"`), layout.ErrFormat, "cannot unmarshal"},
	{"no layer type", replace(good, `"mediaType":"l",`, ``), layout.ErrFormat, "no media type"},
	{"sha512", replace(good, `sha256:`+hexB, `sha512:`+hexB+hexB), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"unknown algorithm", replace(good, `sha256:`+hexB, `md5:`+hexB), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"upper-case hex", replace(good, hexB, strings.ToUpper(hexB)), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"63 digits", replace(good, hexB, hexB[1:]), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"not hex", replace(good, hexB, "g"+hexB[1:]), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"a path for a digest", replace(good, hexB, "../../x"), layout.ErrFormat, "want sha256: and 64 lower-case hex digits"},
	{"digest without an algorithm", replace(good, `sha256:`+hexB, hexB), layout.ErrFormat, "want sha256:"},
	{"no digest", replace(good, `"digest":"sha256:`+hexB+`",`, ``), layout.ErrFormat, "want sha256:"},
	{"one digest, two sizes", replace(good, `"layers":[`, `"layers":[{"mediaType":"l","digest":"sha256:`+hexB+`","size":7},`), layout.ErrFormat, "two sizes"},
	{"other data", replace(good, `"layers":[`, `"layers":[{"mediaType":"l","digest":"sha256:`+strings.Repeat("c", 64)+`","size":3,"data":"Zm9v"},`), layout.ErrDigest, "embedded data"},
	{"data of another size", replace(good, `"layers":[`, `"layers":[{"mediaType":"l","digest":"sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae","size":4,"data":"Zm9v"},`), layout.ErrDigest, "embedded data"},
	{"bad subject", replace(good, `"artifactType":"t"`, `"subject":{}`), layout.ErrFormat, "no media type"},
	{"annotation is no text", replace(good, `"k":"v"`, `"k":1`), layout.ErrFormat, "cannot unmarshal"},
	{"escapes in a type", replace(good, `application/vnd.oci.image.manifest.v1+json`, `\u001b[2J`), layout.ErrFormat, `\x1b[2J`},
	{"too large", good + strings.Repeat(" ", layout.MaxManifestBytes), layout.ErrLimit, "want at most 4194304"},
	{"too many layers", replace(good, `"layers":[`, `"layers":[`+strings.Repeat(`{"mediaType":"l","digest":"sha256:`+hexB+`","size":6},`, layout.MaxLayers)), layout.ErrLimit, "10001 layers"},
}

func TestParseManifestRefuses(t *testing.T) {
	for _, c := range badManifests {
		t.Run(c.name, func(t *testing.T) {
			_, err := layout.ParseManifest([]byte(c.json))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v: …%s…", err, c.kind, c.text)
			}
		})
	}
}

func TestAnIndexComesWithAHint(t *testing.T) {
	_, err := layout.ParseManifest([]byte(`{"schemaVersion":2,"manifests":[]}`))
	if hints := hint.Of(err); len(hints) != 1 || !strings.Contains(hints[0].String(), "digest") {
		t.Errorf("got the hints %q, want one about digests", hints)
	}
}

// manifests is a Fetcher of one image manifest.
type manifests struct {
	layout.Fetcher
	body  []byte
	calls int
}

func (m *manifests) FetchManifest(context.Context, ocispec.Descriptor) ([]byte, error) {
	m.calls++
	return m.body, nil
}

func TestReadManifestComparesTypes(t *testing.T) {
	docker := "application/vnd.docker.distribution.manifest.v2+json"
	cases := []struct {
		body, came string
		edit       func(*ocispec.Descriptor)
		want       error
		calls      int
	}{
		{good, ocispec.MediaTypeImageManifest, nil, nil, 1},
		{good, "", nil, nil, 1},
		{replace(good, `"mediaType":"application/vnd.oci.image.manifest.v1+json",`, ``), ocispec.MediaTypeImageManifest, nil, nil, 1},
		{good, docker, nil, layout.ErrFormat, 1},
		{good, ocispec.MediaTypeImageIndex, nil, layout.ErrFormat, 1}, // for the hints
		{good, "text/html", nil, layout.ErrFormat, 0},
		{good, ocispec.MediaTypeImageManifest, func(d *ocispec.Descriptor) { d.Size = 512 << 20 }, layout.ErrLimit, 0},
		{good, ocispec.MediaTypeImageManifest, func(d *ocispec.Descriptor) { d.Size++ }, layout.ErrDigest, 1},
		{good, ocispec.MediaTypeImageManifest, func(d *ocispec.Descriptor) { d.Digest = "sha256:" + hexA }, layout.ErrDigest, 1},
		{`{}`, ocispec.MediaTypeImageManifest, nil, layout.ErrFormat, 1},
	}
	for _, c := range cases {
		f := &manifests{body: []byte(c.body)}
		desc := descOf(c.came, f.body)
		if c.edit != nil {
			c.edit(&desc)
		}
		b, m, err := layout.ReadManifest(t.Context(), f, desc)
		if !errors.Is(err, c.want) || (err == nil && (m.ArtifactType != "t" || string(b) != c.body)) || f.calls != c.calls {
			t.Errorf("%s came as %q: got %v after %d fetches, want %v after %d", c.body, c.came, err, f.calls, c.want, c.calls)
		}
	}
}

// An index is refused with what can be chosen from it, and with no more than is
// there and can be believed.
func TestAnIndexIsRefusedWithWhatItLists(t *testing.T) {
	entry := func(fields string) string {
		return `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + hexA + `","size":1` + fields + `}`
	}
	const last = "say which one by its digest: REPOSITORY@sha256:…"
	cases := map[string]struct {
		manifests string
		want      []string
	}{
		"nothing":       {"", nil},
		"an artifact":   {entry(`,"artifactType":"a/model"`), []string{"it lists sha256:" + hexA + " (a/model)"}},
		"a platform":    {entry(`,"platform":{"os":"linux","architecture":"arm64"}`), []string{"it lists sha256:" + hexA + " (linux/arm64)"}},
		"neither":       {entry(""), []string{"it lists sha256:" + hexA + " (application/vnd.oci.image.manifest.v1+json)"}},
		"no digest":     {`{"digest":"x"},` + entry(`,"artifactType":"a"`), []string{"it lists sha256:" + hexA + " (a)"}},
		"unprintable":   {entry(`,"artifactType":"\u001b[2J"`), []string{"it lists sha256:" + hexA + ` ($'\x1b[2J')`}},
		"more than few": {strings.Repeat(entry(`,"artifactType":"a"`)+",", 40) + entry(""), slices.Repeat([]string{"it lists sha256:" + hexA + " (a)"}, 5)},
		"no JSON":       {"{", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := &manifests{body: []byte(`{"schemaVersion":2,"manifests":[` + c.manifests + `]}`)}
			for _, mediaType := range []string{ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json"} {
				_, _, err := layout.ReadManifest(t.Context(), f, descOf(mediaType, f.body))
				if got, want := fmt.Sprint(hint.Of(err)), fmt.Sprint(append(slices.Clone(c.want), last)); !errors.Is(err, layout.ErrFormat) || got != want {
					t.Errorf("got %v with the hints %q, want %q", err, got, want)
				}
			}
		})
	}
	f := &manifests{body: []byte(`{"manifests":[` + entry("") + `]}`)}
	desc := descOf(ocispec.MediaTypeImageIndex, f.body)
	desc.Digest = "sha256:" + hexA
	if _, _, err := layout.ReadManifest(t.Context(), f, desc); fmt.Sprint(hint.Of(err)) != fmt.Sprint([]string{last}) {
		t.Errorf("another index than wanted: got the hints %q", hint.Of(err))
	}
}

func ExampleParseManifest() {
	_, err := layout.ParseManifest([]byte(`{"schemaVersion":2,"schemaVersion":2}`))
	fmt.Println(err)
	// Output: image manifest: has the JSON key schemaVersion twice
}
