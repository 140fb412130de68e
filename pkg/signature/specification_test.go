package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// judgeBySpecification verifies a bundle over a model as the specifications say, with
// nothing of this package.
func judgeBySpecification(bundle []byte, key *ecdsa.PublicKey, members map[string]string) error {
	var doc map[string]any
	if err := json.Unmarshal(bundle, &doc); err != nil {
		return err
	}
	if doc["mediaType"] != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		return fmt.Errorf("mediaType %v", doc["mediaType"])
	}
	envelope := doc["dsseEnvelope"].(map[string]any)
	payload, err := base64.StdEncoding.DecodeString(envelope["payload"].(string))
	if err != nil {
		return err
	}
	// DSSE: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body
	kind := envelope["payloadType"].(string)
	pae := "DSSEv1 " + strconv.Itoa(len(kind)) + " " + kind + " " + strconv.Itoa(len(payload)) + " " + string(payload)
	signatures := envelope["signatures"].([]any)
	sig, err := base64.StdEncoding.DecodeString(signatures[0].(map[string]any)["sig"].(string))
	if err != nil || len(signatures) != 1 || kind != "application/vnd.in-toto+json" {
		return fmt.Errorf("%d signatures of %s: %w", len(signatures), kind, err)
	}
	if err := plainECDSA(key, pae, sig); err != nil {
		return err
	}
	var st struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			Serialization map[string]any
			Resources     []struct{ Name, Algorithm, Digest string }
		}
	}
	if err := json.Unmarshal(payload, &st); err != nil {
		return err
	}
	if st.Type != "https://in-toto.io/Statement/v1" || st.PredicateType != "https://model_signing/signature/v1.0" || len(st.Subject) != 1 {
		return fmt.Errorf("statement: %+v", st)
	}
	var names []string
	all := sha256.New()
	for _, r := range st.Predicate.Resources {
		if members[r.Name] != r.Digest || r.Algorithm != "sha256" {
			return fmt.Errorf("resource %+v, want %s", r, members[r.Name])
		}
		names = append(names, r.Name)
		raw, _ := hex.DecodeString(r.Digest)
		all.Write(raw)
	}
	if !sort.StringsAreSorted(names) || len(names) != len(members) {
		return fmt.Errorf("names %q", names)
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != st.Subject[0].Digest["sha256"] {
		return fmt.Errorf("root %s, got %s", st.Subject[0].Digest, got)
	}
	return nil
}

// plainECDSA verifies by FIPS 186-5, 6.4.2, in big integers.
func plainECDSA(key *ecdsa.PublicKey, message string, sig []byte) error {
	hash := map[int]crypto.Hash{256: crypto.SHA256, 384: crypto.SHA384, 521: crypto.SHA512}[key.Curve.Params().BitSize].New()
	hash.Write([]byte(message))
	n := key.Curve.Params().N
	if len(sig) < 8 || sig[0] != 0x30 {
		return fmt.Errorf("no ASN.1 sequence")
	}
	rest := sig[2:]
	if sig[1] == 0x81 {
		rest = sig[3:]
	}
	r, s := new(big.Int), new(big.Int)
	for _, x := range []*big.Int{r, s} {
		length := int(rest[1])
		x.SetBytes(rest[2 : 2+length])
		rest = rest[2+length:]
	}
	e := new(big.Int).SetBytes(hash.Sum(nil)) // no curve's hash is longer than its order
	w := new(big.Int).ModInverse(s, n)
	u1, u2 := new(big.Int).Mul(e, w), new(big.Int).Mul(r, w)
	x1, y1 := key.Curve.ScalarBaseMult(u1.Mod(u1, n).Bytes())                            //nolint:staticcheck // another way than crypto/ecdsa's
	x2, y2 := key.Curve.ScalarMult(key.X, key.Y, u2.Mod(u2, n).Bytes())                  //nolint:staticcheck // as above
	if x, _ := key.Curve.Add(x1, y1, x2, y2); x.Mod(x, n).Cmp(r) != 0 || r.Sign() == 0 { //nolint:staticcheck // as above
		return fmt.Errorf("the signature is wrong")
	}
	return nil
}

// membersOf is what the specification has of a model: its files by their names.
func membersOf(m *carton.Manifest) map[string]string {
	all := map[string]string{"MANIFEST": m.ModelHash()}
	for _, e := range m.Entries() {
		all[e.Path] = e.Hash
	}
	delete(all, ".github/workflows/x.yml") // skipped at the root
	return all
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// What is signed is right by the specifications, by another way than ours.
func TestSignedModelsAreRightByTheSpecification(t *testing.T) {
	m := sampleManifest(t)
	for name, curve := range curves {
		t.Run(name, func(t *testing.T) {
			key := fixedKey(t, curve)
			got, err := signerOf(t, key).SignModel(m, "sample")
			if err != nil {
				t.Fatal(err)
			}
			if err := judgeBySpecification(got, &key.PublicKey, membersOf(m)); err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			again, err := signerOf(t, key).SignModel(m, "sample")
			if err != nil || !bytes.Equal(got, again) {
				t.Errorf("signed again: other bytes, %v", err)
			}
			trust := &Trust{Keys: []*PublicKey{publicOf(t, key)}}
			if j := trust.Judge("x", got, Subject{Model: m}); j.Err != nil || j.Signer.KeyID != trust.Keys[0].ID() {
				t.Errorf("got %+v", j)
			}
		})
	}
}

// The bytes are pinned: whoever signs a model again makes the same blob.
func TestSignedBytesDoNotMove(t *testing.T) {
	m := manifestOf(t, "carton.toml", "model/x")
	s := signerOf(t, fixedKey(t, elliptic.P256()))
	image, err := s.SignImage(m.ModelHash())
	if err != nil {
		t.Fatal(err)
	}
	model, err := s.SignModel(m, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"image.p256.sig": image, "model.p256.sig": model} {
		path := filepath.Join("testdata", name)
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, bytes.TrimSuffix(want, []byte("\n"))) {
			t.Errorf("%s: got\n%s\nwant\n%s (%v)", path, got, want, err)
		}
	}
}

// What cosign reads is what cosign writes, but for the key's hint, which it ignores.
func TestStatementOfAnImageIsCosigns(t *testing.T) {
	b, err := Parse(fixture(t, "cosign/p256.bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(fixture(t, "cosign/artifact.manifest.json"))
	if got, err := NewImage(hex.EncodeToString(sum[:])); err != nil || !bytes.Equal(got, b.payload) {
		t.Errorf("got %s, %v, want %s", got, err, b.payload)
	}
}

// The hint is the one that model_signing accepts.
func TestHintIsThatOfModelSigning(t *testing.T) {
	for _, curve := range []string{"p256", "p384", "p521"} {
		keys := fixtureKeys(t, "keys/"+curve+".pub")
		b, err := Parse(fixture(t, "model-signing/test.carton."+curve+".sig"))
		if err != nil || keys.Keys[0].ID() != b.hint {
			t.Errorf("%s: got %s, want %s (%v)", curve, keys.Keys[0].ID(), b.hint, err)
		}
	}
}

// The root digest over MANIFEST is what model_signing found in the files.
func TestRootDigestIsThatOfModelSigning(t *testing.T) {
	m, err := carton.ParseManifest(fixture(t, "model-signing/test.carton.MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := root(resourcesOf(m)), "4d4df79095651745609202d8dcebd17398b55ea92ca297ba0da9412af52562f5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The schemas of the specification take what is signed.
func TestSignedModelsAreValidByTheSchemas(t *testing.T) {
	c := jsonschema.NewCompiler()
	for _, name := range []string{"bundle", "envelope", "statement", "predicate"} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(fixture(t, "oms-spec/schemas/"+name+".schema.json")))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	root, inter, key := newKey(t), newKey(t), newKey(t)
	ca := issue(t, authority("root"), nil, root, nil)
	between := issue(t, authority("between"), ca, inter, root)
	leaf := issue(t, codeSigner("signer"), between, key, inter)
	for _, s := range []*Signer{signerOf(t, key), signerOf(t, key, leaf, between, ca)} {
		bundle, err := s.SignModel(sampleManifest(t), "sample")
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse(bundle)
		if err != nil {
			t.Fatal(err)
		}
		for name, raw := range map[string][]byte{"bundle": bundle, "statement": b.payload} {
			schema, err := c.Compile("https://model_signing/" + name + "/v1.0/schema")
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(doc); err != nil {
				t.Errorf("%s: %v\n%s", name, err, raw)
			}
		}
	}
}
