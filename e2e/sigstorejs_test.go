//go:build sigstorejs

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// sigstoreJS is sigstore's implementation in JavaScript, which shares no code with
// cosign's: make e2e-sigstore-js.
var sigstoreJS = []string{"@sigstore/verify@2.1.1", "@sigstore/bundle@3.1.0"}

// judgeScript judges a bundle by a public key, and what the statement says of a folder by
// the specification of model signing.
const judgeScript = `
import { createHash, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { assertBundleLatest, bundleFromJSON } from "@sigstore/bundle";
import { Verifier, toSignedEntity, toTrustMaterial } from "@sigstore/verify";
const [file, pub, folder] = process.argv.slice(2);
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
try {
  const bundle = bundleFromJSON(JSON.parse(readFileSync(file, "utf8")));
  assertBundleLatest(bundle);
  const key = { publicKey: createPublicKey(readFileSync(pub)), validFor: () => true };
  const none = { mediaType: "", certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] };
  const verifier = new Verifier(toTrustMaterial(none, () => key), { tlogThreshold: 0, ctlogThreshold: 0, tsaThreshold: 0 });
  verifier.verify(toSignedEntity(bundle));
  const { subject, predicateType, predicate } = JSON.parse(bundle.content.dsseEnvelope.payload);
  const digest = subject[0].digest.sha256;
  let wrong = "";
  for (const r of predicate.resources ?? []) {
    if (folder && sha256(readFileSync(folder + "/" + r.name)) !== r.digest) wrong = r.name;
  }
  if (predicate.resources && sha256(Buffer.from(predicate.resources.map((r) => r.digest).join(""), "hex")) !== digest) wrong = "root";
  console.log(JSON.stringify({ predicateType, digest, wrong, resources: predicate.resources?.length ?? 0 }));
} catch (e) {
  console.log(JSON.stringify({ error: (e.code ?? "") + " " + e.message }));
}
`

// judgement is what the script prints.
type judgement struct {
	PredicateType, Digest, Wrong, Error string
	Resources                           int
}

// Both kinds of what we sign are verified by sigstore's other implementation, by the key
// that signed and no other, and not where a byte has changed.
func TestSigstoreJSVerifiesWhatWeSign(t *testing.T) {
	testenv.Program(t, "node")
	testenv.Program(t, "npm")
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts"}, sigstoreJS...)...)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	putFile(t, filepath.Join(dir, "judge.mjs"), []byte(judgeScript))
	u := newUser(t).with("COSIGN_PASSWORD=pw")
	judge := func(bundle, key string) (j judgement) {
		cmd := exec.CommandContext(t.Context(), "node", "judge.mjs", bundle, u.path(key), u.path("folder"))
		cmd.Dir = dir
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &j)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return j
	}
	mixedModel().write(t, u.path("m.carton"))
	for _, name := range []string{"org", "other"} {
		u.must(t, "keygen", "-o", name)
	}
	u.must(t, "pull", "m.carton", "--unpack", "folder")
	u.must(t, "push", "m.carton", "oci:lay:1", "--sign-key", "org.key")
	artifact := strings.TrimSpace(u.must(t, "resolve", "oci:lay:1", "-q").stdout)
	blobs, err := filepath.Glob(u.path("lay/blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]judgement{}
	for _, name := range blobs {
		raw, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(raw), `{"mediaType":"application/vnd.dev.sigstore.bundle.`) {
			continue
		}
		j := judge(name, "org.pub")
		found[j.PredicateType] = j
		if j := judge(name, "other.pub"); j.Error == "" {
			t.Errorf("%s: verified by a key that signed nothing", name)
		}
		at := strings.Index(string(raw), `"payload":"`) + 40 // inside the payload
		raw[at] ^= 2
		spoilt := filepath.Join(dir, "spoilt.json")
		putFile(t, spoilt, raw)
		if j := judge(spoilt, "org.pub"); j.Error == "" {
			t.Errorf("%s: verified with another byte", name)
		}
	}
	model, image := found["https://model_signing/signature/v1.0"], found["https://sigstore.dev/cosign/sign/v1"]
	if model.Error != "" || model.Wrong != "" || model.Resources == 0 {
		t.Errorf("the model's: got %+v", model)
	}
	if image.Error != "" || "sha256:"+image.Digest != artifact {
		t.Errorf("the artifact's: got %+v, want %s", image, artifact)
	}
}
