package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// keyPair returns somebody who signs, and the trust in them.
func keyPair(t testing.TB) (*signature.Signer, *signature.Trust) {
	t.Helper()
	key, err := signature.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := signature.NewSigner(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &signature.Trust{Keys: []*signature.PublicKey{s.PublicKey()}}
}

// weights is a model whose weights are layers of their own.
func weights() *cartontest.Source {
	return cartontest.New(map[string][]byte{
		"model/a.safetensors": noise(1, 300_000), "model/b.bin": bytes.Repeat([]byte("b"), 300_000), "model/c.json": []byte("{\"c\": 1}"),
	}, nil)
}

// One signature over MANIFEST holds for the model in all its forms, and only for it.
func TestSignedOnceVerifiedEverywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	signer, trust := keyPair(t)
	_, stranger := keyPair(t)
	from, to := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}}), registrytest.New(t, registrytest.Config{})
	c := fresh()
	ref, copied := from.Host+"/m:1", to.Host+"/copy/m:2"
	if _, err := c.PushSource(t.Context(), weights(), "m", ref, PushOptions{Mapping: convert.Options{Image: true, Layers: convert.FormRaw}}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []PullOptions{{Output: "m.carton"}, {Unpack: "folder"}, {Output: "thin.carton", Thin: true}} {
		if _, err := c.Pull(t.Context(), ref, o); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := c.Sign(t.Context(), "m.carton", signer, SignOptions{})
	if err != nil || len(signed.Signatures) != 1 || signed.Signatures[0].Path != "m.carton.sig" {
		t.Fatalf("got %+v, %v", signed, err)
	}
	for _, name := range []string{"oci:lay:1", copied} {
		if _, err := c.Copy(t.Context(), ref, name, CopyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range []string{"m.carton", "folder", "thin.carton", "oci:lay:1", ref, ref + "-image", copied} {
		o := OpenOptions{Trust: trust, Signature: "m.carton.sig"}
		if place == ref+"-image" {
			if _, err := c.Resolve(t.Context(), place); err != nil {
				t.Fatal(err)
			}
		}
		src, err := c.Open(t.Context(), place, o)
		if err != nil {
			t.Errorf("%s: %v", place, err)
			continue
		}
		src.Close()
		o.Trust = stranger
		if _, err := c.Open(t.Context(), place, o); !errors.Is(err, signature.ErrSigner) {
			t.Errorf("%s, another key: got %v", place, err)
		}
	}
	if _, err := c.Open(t.Context(), "folder", OpenOptions{Trust: trust}); !errors.Is(err, signature.ErrNotSigned) {
		t.Errorf("no signature beside the folder: got %v", err)
	}
	other := cartontest.New(map[string][]byte{"model/a.safetensors": noise(2, 10)}, nil)
	if err := carton.Assemble(t.Context(), "other.carton", other, carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), "other.carton", OpenOptions{Trust: trust, Signature: "m.carton.sig"}); !errors.Is(err, signature.ErrModel) {
		t.Errorf("another model: got %v", err)
	}
}

// What is signed in a registry is the same however often it is signed, whether the
// registry lists referrers or somebody keeps an index.
func TestSigningTwiceIsOneSignature(t *testing.T) {
	for name, quirks := range map[string]registrytest.Quirks{"listed": {Referrers: true}, "index": {}, "lost": {ReferrersLost: true}} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, registrytest.Config{Quirks: quirks})
			signer, trust := keyPair(t)
			ref := r.Host + "/m:1"
			pushed, err := fresh().PushSource(t.Context(), weights(), "m", ref, PushOptions{
				Mapping: convert.Options{Image: true}, Signer: signer,
			})
			if err != nil || len(pushed.Signatures) != 4 {
				t.Fatalf("got %+v, %v", pushed, err)
			}
			again, err := fresh().Sign(t.Context(), ref, signer, SignOptions{})
			if err != nil || len(again.Signatures) != 4 {
				t.Fatalf("got %+v, %v", again, err)
			}
			for i, x := range again.Signatures {
				if was := pushed.Signatures[i]; x.Digest != was.Digest || !x.Existed || was.Existed {
					t.Errorf("got %+v, want it to be there as %+v", x, was)
				}
			}
			for tag, digest := range map[string]digest.Digest{"1": pushed.Digest, "1-image": pushed.Image.Digest} {
				asked := open(t, r.Host+"/m:"+tag, OpenOptions{Trust: trust})
				if len(asked.Signatures) != 2 || len(asked.Unread) != 0 {
					t.Errorf("%s %s: got %+v", tag, digest, asked)
				}
			}
		})
	}
}

// open opens what should be signed, and returns what was found.
func open(t testing.TB, ref string, o OpenOptions) (asked *Asked) {
	t.Helper()
	o.Asked = func(a *Asked) { asked = a }
	src, err := fresh().Open(t.Context(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	return asked
}

// errAny stands for any error.
var errAny = errors.New("any error")

// hostile puts referrers beside an artifact as anybody who may write there can.
type hostile struct {
	t       *testing.T
	r       *registrytest.Registry
	subject ocispec.Descriptor
}

func (h *hostile) blob(content string) ocispec.Descriptor {
	d := h.r.AddBlob("m", []byte(content))
	d.MediaType = signature.MediaType
	return d
}

// refer adds a manifest; change may make it lie.
func (h *hostile) refer(blob ocispec.Descriptor, change func(*ocispec.Manifest)) {
	h.t.Helper()
	config := h.r.AddBlob("m", []byte("{}"))
	config.MediaType = ocispec.MediaTypeEmptyJSON
	m := ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: signature.MediaType, Config: config,
		Layers: []ocispec.Descriptor{blob}, Subject: &h.subject,
	}
	m.SchemaVersion = 2
	if change != nil {
		change(&m)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		h.t.Fatal(err)
	}
	h.r.AddManifest("m", ocispec.MediaTypeImageManifest, raw)
}

// A pull that wants a signature decides before any weight is asked for.
func TestPullRefusesBeforeTheFirstWeight(t *testing.T) {
	signer, trust := keyPair(t)
	stranger, _ := keyPair(t)
	src := weights()
	sign := func(s *signature.Signer, m *carton.Manifest) string {
		raw, err := s.SignModel(m, "m")
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	good := sign(signer, src.Manifest())
	another := sign(signer, sample().Manifest())
	image, err := signer.SignImage(strings.Repeat("0", 64))
	if err != nil {
		t.Fatal(err)
	}
	gone := ocispec.Descriptor{MediaType: signature.MediaType, Digest: digest.FromString("gone"), Size: 4}
	for name, c := range map[string]struct {
		put  func(h *hostile)
		want error
	}{
		"nothing":                {func(*hostile) {}, signature.ErrNotSigned},
		"by another key":         {func(h *hostile) { h.refer(h.blob(sign(stranger, src.Manifest())), nil) }, signature.ErrSigner},
		"of another model":       {func(h *hostile) { h.refer(h.blob(another), nil) }, signature.ErrModel},
		"of another artifact":    {func(h *hostile) { h.refer(h.blob(string(image)), nil) }, signature.ErrModel},
		"junk":                   {func(h *hostile) { h.refer(h.blob("{}"), nil) }, signature.ErrFormat},
		"truncated":              {func(h *hostile) { h.refer(h.blob(good[:len(good)-2]), nil) }, signature.ErrFormat},
		"huge":                   {func(h *hostile) { h.refer(h.blob(strings.Repeat(" ", 1<<20)+good), nil) }, signature.ErrNotSigned},
		"says it is small":       {func(h *hostile) { b := h.blob(good); b.Size = 100; h.refer(b, nil) }, errAny},
		"a blob that isn't here": {func(h *hostile) { h.refer(gone, nil) }, signature.ErrNotSigned},
		"two layers": {func(h *hostile) {
			h.refer(h.blob(good), func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) })
		}, signature.ErrNotSigned},
		"of another subject": {func(h *hostile) {
			h.refer(h.blob(good), func(m *ocispec.Manifest) {
				m.Subject = &ocispec.Descriptor{MediaType: "x", Digest: gone.Digest, Size: 4}
			})
		}, signature.ErrNotSigned},
		"of another type": {func(h *hostile) {
			h.refer(h.blob(good), func(m *ocispec.Manifest) { m.ArtifactType = "application/vnd.example" })
		}, signature.ErrNotSigned},
		"behind large ones": {func(h *hostile) {
			large := h.blob("{" + strings.Repeat(" ", 250<<10) + "}")
			for i := range 30 {
				h.refer(large, func(m *ocispec.Manifest) { m.Annotations = map[string]string{"n": fmt.Sprint(i)} })
			}
			h.refer(h.blob(good), nil)
		}, nil},
		"behind large manifests": {func(h *hostile) {
			for i := range 18 {
				h.refer(h.blob("{}"), func(m *ocispec.Manifest) {
					m.Layers[0].Annotations = map[string]string{"x": strings.Repeat("x", 3900<<10+i)}
				})
			}
			h.refer(h.blob(good), nil)
		}, nil},
		"one of many is right": {func(h *hostile) {
			for i := range 40 {
				h.refer(h.blob(fmt.Sprintf("{%d", i)), nil)
			}
			h.refer(h.blob(another), nil)
			h.refer(h.blob(good), nil)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true, AnyManifest: true}})
			pushed, err := fresh().PushSource(t.Context(), src, "m", r.Host+"/m:1", PushOptions{})
			if err != nil {
				t.Fatal(err)
			}
			h := &hostile{t, r, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: pushed.Digest, Size: pushed.Size}}
			c.put(h)
			r.Forget()
			out := filepath.Join(t.TempDir(), "m.carton")
			_, err = fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out, Trust: trust})
			if !errors.Is(err, c.want) && (c.want != errAny || err == nil) || (err == nil) != (c.want == nil) { //nolint:errorlint // stands for any
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if _, there := os.Lstat(out); (there == nil) != (c.want == nil) {
				t.Errorf("the file: %v", there)
			}
			for _, l := range pushed.Layers {
				if n := r.Count("GET", l.Digest.String()); c.want != nil && n > 0 && strings.Contains(l.Paths[0], "model/") {
					t.Errorf("%s was asked for %d times", l.Paths[0], n)
				}
			}
		})
	}
}

// A copy of what is not signed is refused before anything is sent; one with its
// signatures verifies where it went.
func TestCopyOfWhatIsSigned(t *testing.T) {
	signer, trust := keyPair(t)
	_, stranger := keyPair(t)
	from, to := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	ref, copied := from.Host+"/m:1", to.Host+"/m:1"
	c := fresh()
	if _, err := c.PushSource(t.Context(), weights(), "m", ref, PushOptions{Signer: signer, Mapping: convert.Options{Image: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Copy(t.Context(), ref, copied, CopyOptions{Trust: stranger}); !errors.Is(err, signature.ErrSigner) {
		t.Errorf("another key: got %v", err)
	}
	if n := to.Count("PUT|POST|PATCH", ""); n > 0 {
		t.Errorf("%d requests sent something", n)
	}
	if _, err := c.Copy(t.Context(), ref, copied, CopyOptions{Trust: trust, Recursive: true}); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"1", "1-image"} {
		if asked := open(t, to.Host+"/m:"+tag, OpenOptions{Trust: trust}); len(asked.Signatures) != 2 {
			t.Errorf("%s: got %+v", tag, asked)
		}
	}
}

// A thousand signatures that anybody may add are read, and the one that counts is found.
func TestAThousandSignatures(t *testing.T) {
	signer, trust := keyPair(t)
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	ref := r.Host + "/m:1"
	pushed, err := fresh().PushSource(t.Context(), sample(), "m", ref, PushOptions{Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t, r, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: pushed.Digest, Size: pushed.Size}}
	junk := h.blob("{}")
	for i := range 998 {
		h.refer(junk, func(m *ocispec.Manifest) { m.Annotations = map[string]string{"n": fmt.Sprint(i)} })
	}
	if asked := open(t, ref, OpenOptions{Trust: trust}); len(asked.Signatures) != 1000 {
		t.Errorf("got %d", len(asked.Signatures))
	}
	h.refer(junk, nil)
	if _, err := fresh().Open(t.Context(), ref, OpenOptions{Trust: trust}); !errors.Is(err, layout.ErrLimit) {
		t.Errorf("one more: got %v", err)
	}
}

// The policy is asked whatever the options say, before any weight.
func TestPolicyIsAsked(t *testing.T) {
	signer, trust := keyPair(t)
	_, stranger := keyPair(t)
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true}})
	for _, repo := range []string{"signed", "other"} {
		o := PushOptions{}
		if repo == "signed" {
			o.Signer = signer
		}
		if _, err := fresh().PushSource(t.Context(), weights(), "m", r.Host+"/"+repo+":1", o); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("the policy is broken")
	policies := map[string]struct {
		trust *signature.Trust
		err   error
		want  map[string]error
	}{
		"nobody":   {nil, nil, map[string]error{"signed": nil, "other": nil}},
		"signer":   {trust, nil, map[string]error{"signed": nil, "other": signature.ErrNotSigned}},
		"stranger": {stranger, nil, map[string]error{"signed": signature.ErrSigner, "other": signature.ErrNotSigned}},
		"broken":   {nil, broken, map[string]error{"signed": broken, "other": broken}},
	}
	for name, p := range policies {
		c := fresh(Options{Policy: func(host, repository string) (*signature.Trust, string, error) {
			if host != r.Host {
				t.Errorf("asked about %s", host)
			}
			return p.trust, "policy.toml", p.err
		}})
		for repo, want := range p.want {
			ref := r.Host + "/" + repo + ":1"
			dir := t.TempDir()
			verbs := map[string]func() error{
				"pull": func() error {
					_, err := c.Pull(t.Context(), ref, PullOptions{Output: filepath.Join(dir, "m")})
					return err
				},
				"pull with a key": func() error {
					_, err := c.Pull(t.Context(), ref, PullOptions{Output: filepath.Join(dir, "k"), Trust: trust})
					if repo == "other" && want == nil {
						if !errors.Is(err, signature.ErrNotSigned) {
							t.Errorf("got %v", err)
						}
						err = nil
					}
					return err
				},
				"copy": func() error {
					_, err := c.Copy(t.Context(), ref, "oci:"+filepath.Join(dir, "lay")+":1", CopyOptions{})
					return err
				},
				"open": func() error {
					src, err := c.Open(t.Context(), ref, OpenOptions{})
					if err == nil {
						src.Close()
					}
					return err
				},
				"image": func() error { _, err := c.Image(t.Context(), ref, ImageOptions{DryRun: true}); return err },
			}
			for verb, do := range verbs {
				if err := do(); !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("policy %s: %s %s: got %v, want %v", name, verb, repo, err, want)
				}
			}
			src, err := c.Open(t.Context(), ref, OpenOptions{NoPolicy: true})
			if err != nil {
				t.Errorf("policy %s: to look at %s: %v", name, repo, err)
				continue
			}
			src.Close()
		}
	}
}

// To sign and verify a model of 100 GB in a registry takes some requests, and no weight.
func TestSigningAHugeModel(t *testing.T) {
	const layers, each = 20, 5_000_000_000
	files := map[string][]byte{}
	for i := range layers {
		files[fmt.Sprintf("model/part-%02d.safetensors", i)] = noise(byte(i), 100)
	}
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{Referrers: true, AnyManifest: true}})
	pushed, err := fresh().PushSource(t.Context(), cartontest.New(files, nil), "m", r.Host+"/m:small", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The same artifact with layers that are as large as those of such a model. None of
	// them is there: whoever asks for one fails.
	_, raw, _ := r.Manifest("m", "small")
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for i, l := range m.Layers {
		if strings.Contains(pushed.Layers[i].Paths[0], "part-") {
			m.Layers[i].Size = each
			r.Corrupt("m", l.Digest, nil)
		}
	}
	if raw, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	r.AddManifest("m", ocispec.MediaTypeImageManifest, raw, "huge")
	signer, trust := keyPair(t)
	for _, do := range []struct {
		name string
		run  func(ref string) error
		most int // requests
	}{
		{"sign", func(ref string) error {
			_, err := fresh().Sign(context.Background(), ref, signer, SignOptions{})
			return err
		}, 30},
		{"verify", func(ref string) error { open(t, ref, OpenOptions{Trust: trust}); return nil }, 12},
	} {
		r.Forget()
		if err := do.run(r.Host + "/m:huge"); err != nil {
			t.Fatal(err)
		}
		in, out := r.Bytes("", "")
		n := len(r.Requests())
		if in+out > 1_000_000 || n > do.most {
			t.Errorf("%s: got %d requests and %d bytes, want at most %d and 1 MB", do.name, n, in+out, do.most)
		}
		t.Logf("%s: %d requests, %d bytes", do.name, n, in+out)
	}
}
