//go:build hubclient

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// The promise: the hub that the tests push from is one to the hub's own client. That
// is @huggingface/hub from npm, of a version that is written here.

const hubClient = "@huggingface/hub@2.17.5"

// hubScript lists a repository and downloads every file of it, with the hub's own
// client, and prints what that made of it.
const hubScript = `
import { createHash } from "node:crypto";
import { listFiles, downloadFile, modelInfo, fileExists } from "@huggingface/hub";
const [hubUrl, repo, accessToken] = process.argv.slice(2);
const at = { repo, hubUrl, accessToken: accessToken || undefined };
try {
  const info = await modelInfo({ name: repo, hubUrl, accessToken: at.accessToken, additionalFields: ["sha"] });
  const files = [];
  for await (const f of listFiles({ ...at, recursive: true })) {
    if (f.type !== "file") continue;
    const blob = await downloadFile({ ...at, path: f.path });
    const bytes = Buffer.from(await blob.arrayBuffer());
    files.push({ path: f.path, size: f.size, lfs: f.lfs?.oid ?? "", read: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"), exists: await fileExists({ ...at, path: f.path }) });
  }
  console.log(JSON.stringify({ sha: info.sha, files }));
} catch (e) {
  console.log(JSON.stringify({ error: e.message, status: e.statusCode }));
}
`

// hubSays is what the script prints.
type hubSays struct {
	SHA   string
	Files []struct {
		Path, LFS, SHA256 string
		Size, Read        int64
		Exists            bool
	}
	Error  string
	Status int
}

func askAsHubClient(t *testing.T, dir string, args ...string) hubSays {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"ask.mjs"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var says hubSays
	if err == nil {
		err = json.Unmarshal(out, &says)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return says
}

func TestTheHubsOwnClientTakesOursForAHub(t *testing.T) {
	testenv.Program(t, "node")
	testenv.Program(t, "npm")
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", hubClient)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	putFile(t, filepath.Join(dir, "ask.mjs"), []byte(hubScript))

	const token = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
	h := hubtest.New(t, hubtest.Config{PageSize: 2, Token: token, AddressUses: 1000})
	files := append(shards(4<<20, 9), hubtest.File{Path: "empty"}, hubtest.File{Path: "a/b c/ü.txt", Content: "in folders"})
	commit := h.Commit("org/model", files...)
	h.Commit("org/private", files[:2]...)
	h.Private("org/private")
	h.Commit("org/gated", files[:2]...)
	h.Gate("org/gated")

	says := askAsHubClient(t, dir, h.URL, "org/model")
	if says.SHA != commit || len(says.Files) != len(files) {
		t.Fatalf("got the commit %s and %d files, %s; want %s and %d", says.SHA, len(says.Files), says.Error, commit, len(files))
	}
	for _, f := range says.Files {
		i := slices.IndexFunc(files, func(x hubtest.File) bool { return x.Path == f.Path })
		text := make([]byte, max(files[i].Size, int64(len(files[i].Content))))
		_, _ = files[i].ReadAt(text, 0)
		if want := hexSum(string(text)); f.SHA256 != want || f.Read != f.Size || !f.Exists || files[i].Large && f.LFS != want {
			t.Errorf("%s: got %+v, want the sha256 %s", f.Path, f, want)
		}
	}
	for _, c := range []struct {
		repo, token string
		status      int
	}{{"org/none", "", 401}, {"org/private", "", 401}, {"org/private", token, 0}, {"org/gated", "", 401}, {"org/gated", token, 0}, {"org/none", token, 404}} {
		if says := askAsHubClient(t, dir, strings.TrimSpace(h.URL), c.repo, c.token); says.Status != c.status {
			t.Errorf("%s: got the status %d, %s; want %d", c.repo, says.Status, says.Error, c.status)
		}
	}
}
