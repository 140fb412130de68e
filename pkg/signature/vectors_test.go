package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
)

// What model_signing signed over a carton's folder is the signature of its MANIFEST.
func TestSignaturesOfModelSigning(t *testing.T) {
	m, err := carton.ParseManifest(fixture(t, "model-signing/test.carton.MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p256", "p384", "p521"} {
		raw := fixture(t, "model-signing/test.carton."+name+".sig")
		if j := fixtureKeys(t, "keys/"+name+".pub").Judge(name, raw, Subject{Model: m}); j.Err != nil {
			t.Errorf("%s: %v", name, j.Err)
		}
		other := fixtureKeys(t, "keys/"+map[string]string{"p256": "p521", "p384": "p256", "p521": "p384"}[name]+".pub")
		if j := other.Judge(name, raw, Subject{Model: m}); !errors.Is(j.Err, ErrSigner) {
			t.Errorf("%s by another key: got %v", name, j.Err)
		}
		if j := fixtureKeys(t, "keys/"+name+".pub").Judge(name, raw, Subject{Model: sampleManifest(t)}); !errors.Is(j.Err, ErrModel) {
			t.Errorf("%s of another model: got %v", name, j.Err)
		}
	}
	chain := fixture(t, "model-signing/test.carton.chain.sig")
	if j := fixtureCertificates(t, "keys/root.pem").Judge("chain", chain, Subject{Model: m}); j.Err != nil || j.Signer.Identity != "signer@example.com" {
		t.Errorf("chain: got %+v", j)
	}
	if j := fixtureCertificates(t, "model-signing/keys/ca-cert.pem").Judge("chain", chain, Subject{Model: m}); !errors.Is(j.Err, ErrSigner) {
		t.Errorf("chain of another root: got %v", j.Err)
	}
}

// What cosign signed is the signature of the artifact's digest.
func TestSignaturesOfCosign(t *testing.T) {
	sum := sha256.Sum256(fixture(t, "cosign/artifact.manifest.json"))
	about := Subject{Image: hex.EncodeToString(sum[:])}
	for _, name := range []string{"p256", "p384", "p521"} {
		raw := fixture(t, "cosign/"+name+".bundle.json")
		if j := fixtureKeys(t, "keys/"+name+".pub").Judge(name, raw, about); j.Err != nil {
			t.Errorf("%s: %v", name, j.Err)
		}
		if j := fixtureKeys(t, "keys/"+name+".pub").Judge(name, raw, Subject{Image: hashOfText("other")}); !errors.Is(j.Err, ErrModel) {
			t.Errorf("%s of another artifact: got %v", name, j.Err)
		}
	}
	trust := fixtureCertificates(t, "keys/root.pem")
	if j := trust.Judge("chain", fixture(t, "cosign/chain.bundle.json"), about); j.Err != nil {
		t.Errorf("chain: %v", j.Err)
	}
	leaf := fixture(t, "cosign/certificate.bundle.json")
	if j := trust.Judge("leaf", leaf, about); !errors.Is(j.Err, ErrSigner) {
		t.Errorf("leaf without the intermediate: got %v", j.Err)
	}
	trust = fixtureCertificates(t, "keys/root.pem", "keys/int.pem")
	if j := trust.Judge("leaf", leaf, about); j.Err != nil {
		t.Errorf("leaf: %v", j.Err)
	}
	keyless := fixture(t, "sigstore/oci-attestation.sigstore.json")
	if j := trust.Judge("keyless", keyless, about); !errors.Is(j.Err, ErrKeyless) {
		t.Errorf("keyless: got %v", j.Err)
	}
}

// Folders that model_signing signed over the years, as statements: who signed, and
// that the statement is right in itself. MANIFEST they have none.
func TestVersionsOfModelSigning(t *testing.T) {
	for _, version := range []string{"v0.3.1", "v1.0.0", "v1.0.1", "v1.1.0"} {
		for method, trust := range map[string]*Trust{
			"elliptic-key": fixtureKeys(t, "model-signing/keys/signing-key-pub.pem"),
			"certificate":  fixtureCertificates(t, "model-signing/keys/ca-cert.pem"),
		} {
			b, err := Parse(fixture(t, fmt.Sprintf("model-signing/%s-%s/model.sig", version, method)))
			if err != nil {
				t.Errorf("%s %s: %v", version, method, err)
				continue
			}
			s, _, err := trust.Verify(b)
			if err != nil || s.PredicateType != PredicateModel {
				t.Errorf("%s %s: got %+v, %v", version, method, s, err)
				continue
			}
			for _, r := range s.resources {
				name := r.Name
				if name == "." {
					name = "signme-1" // one file was signed
				}
				sum := sha256.Sum256(fixture(t, fmt.Sprintf("model-signing/%s-%s/%s", version, method, name)))
				if hex.EncodeToString(sum[:]) != r.Digest && s.Name != "." && len(s.resources) > 1 {
					t.Errorf("%s %s: %s has another hash", version, method, r.Name)
				}
			}
		}
		b, err := Parse(fixture(t, "model-signing/"+version+"-sigstore/model.sig"))
		if err != nil || !b.keyless || b.Claim().Identity != "stefanb@us.ibm.com" || b.Claim().Issuer != "https://sigstore.verify.ibm.com/oauth2" {
			t.Errorf("%s sigstore: got %+v, %v", version, b.Claim(), err)
		}
	}
	// Before 0.3 the predicate was another one.
	b, err := Parse(fixture(t, "model-signing/v0.2.0-certificate/model.sig"))
	if err == nil {
		var s *Statement
		if s, _, err = fixtureCertificates(t, "model-signing/keys/ca-cert.pem").Verify(b); err == nil {
			err = s.Check(Subject{Model: sampleManifest(t)})
		}
	}
	if err == nil {
		t.Error("0.2.0: accepted")
	}
	t.Log("0.2.0:", err)
}

// Statements of the reference, signed here: right in themselves, but for shards.
func TestStatementsOfModelSigning(t *testing.T) {
	key := newKey(t)
	trust := &Trust{Keys: []*PublicKey{publicOf(t, key)}}
	for name, good := range map[string]bool{
		"deep_model_folder": true, "empty_model_folder": true, "model_folder_with_empty_file": true,
		"sample_model_folder": true, "sample_model_folder_shard": false, "symlink_model_folder": true,
	} {
		raw, err := signerOf(t, key).bundle(fixture(t, "model-signing/statements/"+name+".json"), false)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := trust.Verify(b); (err == nil) != good || err != nil && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The specification's own vectors.
func TestVectorsOfTheSpecification(t *testing.T) {
	keys := fixtureKeys(t, "model-signing/keys/signing-key-pub.pem")
	roots := fixtureCertificates(t, "model-signing/keys/ca-cert.pem")
	read := func(name string) []byte {
		return fixture(t, "oms-spec/test-vectors/"+name+".bundle.json")
	}
	for name, trust := range map[string]*Trust{"valid/key": keys, "valid/certificate": roots} {
		b, err := Parse(read(name))
		if err == nil {
			_, _, err = trust.Verify(b)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if j := roots.Judge("", read("valid/sigstore"), Subject{}); !errors.Is(j.Err, ErrKeyless) {
		t.Errorf("valid/sigstore: got %v", j.Err)
	}
	for _, name := range []string{"empty", "missing-envelope", "missing-verification-material"} {
		if _, err := Parse(read("invalid/" + name)); !errors.Is(err, ErrFormat) {
			t.Errorf("invalid/%s: got %v", name, err)
		}
	}
	// It is a keyless one with a timestamp alone, which nobody here judges.
	if j := roots.Judge("", read("invalid/missing-tlog-entries"), Subject{}); !errors.Is(j.Err, ErrKeyless) {
		t.Errorf("invalid/missing-tlog-entries: got %v", j.Err)
	}
	if j := keys.Judge("", read("invalid-payload/wrong-predicate"), Subject{Model: sampleManifest(t)}); !errors.Is(j.Err, ErrPredicate) && !errors.Is(j.Err, ErrSigner) {
		t.Errorf("wrong predicate: got %v", j.Err)
	} else {
		t.Log("wrong predicate:", j.Err)
	}
}

// Without any file from outside: what was signed once verifies.
func TestOwnVectors(t *testing.T) {
	m := manifestOf(t, "carton.toml", "model/x")
	keys, err := ParsePublicKeys(readTestdata(t, "p256.pub"))
	if err != nil {
		t.Fatal(err)
	}
	trust := &Trust{Keys: keys}
	for name, about := range map[string]Subject{"model": {Model: m}, "image": {Image: m.ModelHash()}} {
		raw := readTestdata(t, name+".p256.sig")
		if j := trust.Judge(name, raw, about); j.Err != nil {
			t.Errorf("%s: %v", name, j.Err)
		}
		if j := trust.Judge(name, raw, Subject{Model: sampleManifest(t), Image: hashOfText("x")}); !errors.Is(j.Err, ErrModel) {
			t.Errorf("%s of another: got %v", name, j.Err)
		}
	}
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
