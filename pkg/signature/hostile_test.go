package signature

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// before and from cut a text where sep begins.
func before(text, sep string) string {
	text, _, _ = strings.Cut(text, sep)
	return text
}

func from(text, sep string) string {
	_, text, _ = strings.Cut(text, sep)
	return sep + text
}

// Bundles that are not what the specification says are refused, each for itself.
func TestHostileBundles(t *testing.T) {
	good := string(readTestdata(t, "model.p256.sig"))
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	swap := func(old, with string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	deep := strings.Repeat("[", 100_000)
	for name, raw := range map[string]string{
		"nothing":                      "",
		"no JSON":                      "x",
		"an array":                     "[]",
		"truncated":                    good[:len(good)-3],
		"data behind the end":          good + "{}",
		"a second bundle behind it":    good + good,
		"an unknown field":             swap(`{"mediaType"`, `{"x":1,"mediaType"`),
		"an unknown field deep inside": swap(`"hint"`, `"x":1,"hint"`),
		"an unknown field of the sig":  swap(`{"sig"`, `{"x":1,"sig"`),
		"an unknown field with a mark": swap(`"hint"`, `"hint?"`),
		"a key twice":                  swap(`"tlogEntries"`, `"publicKey":{"hint":""},"tlogEntries"`),
		"an envelope twice":            strings.TrimSuffix(strings.TrimSpace(good), "}") + "," + from(good, `"dsseEnvelope"`),
		"a key in another case":        swap(`"dsseEnvelope"`, `"DsseEnvelope"`),
		"another media type":           swap("bundle.v0.3", "bundle.v0.9"),
		"another payload type":         swap("application/vnd.in-toto+json", "application/json"),
		"two signatures":               swap(`"signatures":[{`, `"signatures":[{"sig":"AAAA"},{`),
		"no signature":                 before(good, `"signatures":[`) + `"signatures":[]}}`,
		"a payload that is no base64":  swap(`"payload":"`, `"payload":"!`),
		"a key and a certificate":      swap(`"tlogEntries"`, `"certificate":{"rawBytes":"AAAA"},"tlogEntries"`),
		"an empty chain":               swap(before(from(good, `"publicKey"`), `,"tlogEntries"`), `"x509CertificateChain":{"certificates":[]}`),
		"a chain without end":          swap(before(from(good, `"publicKey"`), `,"tlogEntries"`), `"x509CertificateChain":{"certificates":[`+strings.Repeat(`{"rawBytes":"AAAA"},`, 1000)+`{}]}`),
		"neither key nor certificate":  swap(before(from(good, `"publicKey"`), `"tlogEntries"`), ""),
		"deep":                         swap(`"tlogEntries":[]`, `"tlogEntries":`+deep),
		"deep where it is skipped":     swap(`"tlogEntries":[]`, `"tlogEntries":[{"logIndex":`+deep),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(raw)); !errors.Is(err, ErrFormat) {
				t.Errorf("got %v, want ErrFormat", err)
			}
		})
	}
	t.Run("huge", func(t *testing.T) {
		if _, err := Parse(make([]byte, MaxBundleBytes+1)); !errors.Is(err, ErrLimit) {
			t.Errorf("got %v, want ErrLimit", err)
		}
	})
	t.Run("base64 for URLs", func(t *testing.T) {
		if _, err := Parse([]byte(strings.NewReplacer("+/", "-_").Replace(good))); err != nil {
			t.Error(err)
		}
	})
}

// Statements that are signed by whom was asked for, and say something else.
func TestHostileStatements(t *testing.T) {
	m := sampleManifest(t)
	payload, err := NewModel(m, "m")
	if err != nil {
		t.Fatal(err)
	}
	good := string(payload)
	key := newKey(t)
	trust := &Trust{Keys: []*PublicKey{publicOf(t, key)}}
	about := Subject{Model: m, Image: hashOfText("artifact")}
	// with lists other resources, and has the right root digest for them.
	with := func(change func([]resourceJSON) []resourceJSON) string {
		resources := change(resourcesOf(m))
		text, err := jsonstream.Marshal(resources, "")
		if err != nil {
			t.Fatal(err)
		}
		out := before(good, `"resources":`) + `"resources":` + string(text) + "}}"
		return strings.Replace(out, root(resourcesOf(m)), root(resources), 1)
	}
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	image, err := NewImage(about.Image)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		payload string
		want    error
	}{
		"as it is":      {good, nil},
		"another root":  {strings.Replace(good, root(resourcesOf(m)), hashOfText("x"), 1), ErrFormat},
		"another order": {with(func(l []resourceJSON) []resourceJSON { l[1], l[2] = l[2], l[1]; return l }), ErrFormat},
		"the reference's order": {with(func(l []resourceJSON) []resourceJSON {
			for i := range l {
				for k := i + 1; k < len(l); k++ {
					if compareComponents(l[k].Name, l[i].Name) < 0 {
						l[i], l[k] = l[k], l[i]
					}
				}
			}
			return l
		}), nil},
		"a name twice": {with(func(l []resourceJSON) []resourceJSON { return append(l, l[len(l)-1]) }), ErrFormat},
		"a member more": {with(func(l []resourceJSON) []resourceJSON {
			return append(l, resourceJSON{"zzz", "sha256", hashOfText("z")})
		}), ErrModel},
		"a member less":    {with(func(l []resourceJSON) []resourceJSON { return l[:len(l)-1] }), ErrModel},
		"a changed member": {with(func(l []resourceJSON) []resourceJSON { l[2].Digest = hashOfText("x"); return l }), ErrModel},
		"no MANIFEST":      {with(func(l []resourceJSON) []resourceJSON { return l[1:] }), ErrModel},
		"blake2b":          {with(func(l []resourceJSON) []resourceJSON { l[1].Algorithm = "blake2b"; return l }), ErrFormat},
		"capital digits":   {with(func(l []resourceJSON) []resourceJSON { l[1].Digest = strings.ToUpper(l[1].Digest); return l }), ErrFormat},
		"a name that leads out": {with(func(l []resourceJSON) []resourceJSON {
			return append([]resourceJSON{{"../x", "sha256", hashOfText("z")}}, l...)
		}), ErrModel},
		"shards":                       {swap(`"method":"files"`, `"method":"shards"`), ErrFormat},
		"two subjects":                 {swap(`"subject":[`, `"subject":[{"name":"x","digest":{"sha256":"`+hashOfText("x")+`"}},`), ErrFormat},
		"no subject":                   {before(good, `"subject":[`) + `"subject":[],` + from(good, `"predicateType"`), ErrFormat},
		"two digests of the subject":   {swap(`"digest":{`, `"digest":{"sha512":"00",`), ErrFormat},
		"another statement type":       {swap("Statement/v1", "Statement/v0.1"), ErrFormat},
		"another predicate type":       {swap(PredicateModel, "https://slsa.dev/provenance/v1"), ErrPredicate},
		"the deprecated one":           {swap(PredicateModel, "https://model_signing/Digests/v0.1"), ErrPredicate},
		"an unknown field":             {swap(`{"_type"`, `{"x":1,"_type"`), ErrFormat},
		"an unknown field below":       {swap(`"method"`, `"x":1,"method"`), ErrFormat},
		"a predicate twice":            {swap(`"predicate":`, `"predicate":{},"predicate":`), ErrFormat},
		"a type twice":                 {swap(`"predicateType":`, `"predicateType":"x","predicateType":`), ErrFormat},
		"truncated":                    {good[:len(good)-1], ErrFormat},
		"no statement":                 {"hello", ErrFormat},
		"of the artifact":              {string(image), nil},
		"of another artifact":          {strings.Replace(string(image), about.Image, hashOfText("x"), 1), ErrModel},
		"provenance over the artifact": {strings.Replace(string(image), PredicateImage, "https://slsa.dev/provenance/v1", 1), ErrPredicate},
		"an old statement":             {strings.Replace(string(image), "Statement/v1", "Statement/v0.1", 1), ErrFormat},
		"of an artifact, with fields":  {strings.Replace(string(image), `"predicate":{}`, `"predicate":{"x":[1]}`, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := signerOf(t, key).bundle([]byte(c.payload), false)
			if err != nil {
				t.Fatal(err)
			}
			j := trust.Judge("x", raw, about)
			if !errors.Is(j.Err, c.want) || (j.Err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v\n%s", j.Err, c.want, c.payload)
			}
		})
	}
}

// Of many signatures one that counts is enough; where none does, the error says the
// most that is known.
func TestDecide(t *testing.T) {
	m, key, other := sampleManifest(t), newKey(t), newKey(t)
	trust := &Trust{Keys: []*PublicKey{publicOf(t, key)}}
	sign := func(s *Signer, m *carton.Manifest) Judgement {
		raw, err := s.SignModel(m, "m")
		if err != nil {
			t.Fatal(err)
		}
		return trust.Judge("sha256:x", raw, Subject{Model: sampleManifest(t)})
	}
	right, wrong := sign(signerOf(t, key), m), sign(signerOf(t, other), m)
	elsewhere, junk := sign(signerOf(t, key), manifestOf(t, "carton.toml")), trust.Judge("y", []byte("{}"), Subject{Model: m})
	for i, c := range []struct {
		list []Judgement
		want error
	}{
		{nil, ErrNotSigned},
		{[]Judgement{junk, wrong, right, elsewhere}, nil},
		{[]Judgement{wrong}, ErrSigner},
		{[]Judgement{junk, wrong}, ErrSigner},
		{[]Judgement{wrong, elsewhere, junk}, ErrModel},
		{[]Judgement{junk}, ErrFormat},
	} {
		err := Decide(c.list)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%d: got %v, want %v", i, err, c.want)
		}
		if n := len(c.list); err != nil && n > 1 && !strings.Contains(err.Error(), fmt.Sprintf("%d more", n-1)) {
			t.Errorf("%d: got %v", i, err)
		}
	}
}

// The most that is fetched of a bundle is enough for every writer's layout.
func TestMaxBytesOf(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("model/%04d-ü", i))
	}
	m := manifestOf(t, names...)
	payload, err := NewModel(m, "m")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(payload, &doc); err != nil {
		t.Fatal(err)
	}
	wide, err := json.MarshalIndent(doc, "", "      ")
	if err != nil {
		t.Fatal(err)
	}
	if got := int64(base64.StdEncoding.EncodedLen(len(wide))); got > MaxBytesOf(m) {
		t.Errorf("got %d bytes, and the most is %d", got, MaxBytesOf(m))
	}
	if got := MaxBytesOf(nil); got < 64<<10 {
		t.Errorf("got %d", got)
	}
}

func FuzzBundle(f *testing.F) {
	for _, name := range []string{"model.p256.sig", "image.p256.sig"} {
		f.Add(readTestdata(f, name))
	}
	keys, err := ParsePublicKeys(readTestdata(f, "p256.pub"))
	if err != nil {
		f.Fatal(err)
	}
	trust := &Trust{Keys: keys}
	about := Subject{Model: manifestOf(f, "carton.toml", "model/x")}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrLimit) {
				t.Errorf("got %v", err)
			}
			return
		}
		// Whatever is in it, only what was signed counts.
		if j := trust.Judge("x", raw, about); j.Err == nil && string(b.payload) == "" {
			t.Error("nothing was signed, and it counts")
		}
		if s, err := parseStatement(b.payload); err == nil {
			_ = s.Check(about)
		} else if !errors.Is(err, ErrFormat) {
			t.Errorf("got %v", err)
		}
	})
}
