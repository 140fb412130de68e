package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/filekind"
	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// A Hugging Face cache keeps a repository in models--ORG--NAME: blobs/ETAG are
// the files, snapshots/COMMIT/PATH symlinks to them, refs/BRANCH says which
// commit a branch is, and trees/COMMIT.json, which newer tools write, which files
// the commit has.
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
const (
	cachePrefix  = "models--"
	snapshotsDir = "snapshots"
	blobsDir     = "blobs"
)

// maxTreeBytes is the largest list of a commit's files.
const maxTreeBytes = 64 << 20

// snapshot is a folder of a hub's cache.
type snapshot struct {
	cache string // the folder of the repository
	base  string // in it: "snapshots/COMMIT", or a folder below that
}

// commit is the snapshot's, and below the folder in it, "." for all.
func (s *snapshot) commit() (commit, below string) {
	commit, below, _ = strings.Cut(strings.TrimPrefix(s.base, snapshotsDir+"/"), "/")
	return commit, path.Clean(below)
}

// repository is the name that the hub has for it, as in "org/name".
func (s *snapshot) repository() string {
	return strings.ReplaceAll(strings.TrimPrefix(filepath.Base(s.cache), cachePrefix), "--", "/")
}

// findSnapshot says which snapshot of a hub's cache a folder is: one that lies in
// it, or of a repository that the branch main stands for, or the only one. It
// returns nil for any other folder.
func findSnapshot(dir string) (*snapshot, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if at, err = filepath.EvalSymlinks(at); err != nil {
		return nil, err
	}
	if isCache(at) {
		commit, err := chooseSnapshot(at)
		if err != nil {
			return nil, err
		}
		return &snapshot{cache: at, base: snapshotsDir + "/" + commit}, nil
	}
	for cache := filepath.Dir(at); cache != filepath.Dir(cache); cache = filepath.Dir(cache) {
		base, err := filepath.Rel(cache, at)
		if err == nil && isCache(cache) && strings.HasPrefix(filepath.ToSlash(base), snapshotsDir+"/") {
			return &snapshot{cache: cache, base: filepath.ToSlash(base)}, nil
		}
	}
	return nil, nil
}

// isCache reports whether a folder is that of a repository in a hub's cache.
func isCache(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, snapshotsDir))
	return strings.HasPrefix(filepath.Base(dir), cachePrefix) && err == nil && info.IsDir()
}

// chooseSnapshot returns the commit to pack of a repository.
func chooseSnapshot(cache string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(cache, snapshotsDir))
	if err != nil {
		return "", err
	}
	var commits []string
	for _, e := range entries {
		if e.IsDir() {
			commits = append(commits, e.Name())
		}
	}
	raw, err := localfile.Read(filepath.Join(cache, "refs", "main"), 1024)
	if commit := strings.TrimSpace(string(raw)); err == nil && slices.Contains(commits, commit) {
		return commit, nil
	}
	main := strings.TrimSpace(string(raw))
	if err == nil && hubname.IsCommit(main) {
		const text = "is the cache of a repository whose branch main is the commit %s, of which it holds nothing"
		err := hintToDownload(&carton.Error{Kind: carton.ErrFormat, Msg: fmt.Sprintf(text, main)})
		if len(commits) > 0 {
			err = hint.With(err, "or name an older snapshot: %s", filepath.Join(cache, snapshotsDir, commits[0]))
		}
		return "", err
	}
	if len(commits) == 1 {
		return commits[0], nil
	}
	if len(commits) == 0 {
		return "", &carton.Error{
			Kind: carton.ErrFormat,
			Msg:  "is the cache of a repository, and holds no snapshot of it",
		}
	}
	err = &carton.Error{
		Kind: carton.ErrFormat,
		Msg: fmt.Sprintf("is the cache of a repository with %d snapshots, of which none is the branch main",
			len(commits)),
	}
	return "", hint.With(err, "name one of them: %s", filepath.Join(cache, snapshotsDir, commits[0]))
}

// inSnapshot reports whether a file of a cache may be packed: it lies in the
// snapshot, or is a blob.
func inSnapshot(base, name string) bool {
	return strings.HasPrefix(name, base+"/") || path.Dir(name) == blobsDir
}

// hashInName returns the sha256 that the name of a blob claims, as git-lfs and xet
// call theirs, "" for none: small files are called by their git hash.
func hashInName(name string) string {
	if path.Dir(name) == blobsDir && sha256hex.Is(path.Base(name)) {
		return path.Base(name)
	}
	return ""
}

// believeNames takes the sha256 that blobs of a cache are called by for theirs, so
// that a large one is read when it is sent, and judged then, and not at all where
// it is there already. What may be broken is hashed.
func (p *packer) believeNames() {
	for _, f := range p.files {
		if f.nameHash != "" && f.target == "" && !p.opts.AllowInvalid {
			f.hash = f.nameHash
		}
	}
}

// checkNameHashes refuses blobs that were read and are not what they are called.
func (p *packer) checkNameHashes() error {
	for _, f := range slices.Concat(p.files, p.cutFrom) {
		if f.nameHash == "" || f.nameHash == f.hash {
			continue
		}
		err := fmt.Errorf("is damaged in the cache: it has the sha256 %s, and is called %s", f.hash, f.nameHash)
		if err := p.broken(f.path, carton.ErrChecksum, err); err != nil {
			return err
		}
	}
	return nil
}

// listedFile is what the list of a commit's files says of one.
type listedFile struct {
	Size   *int64 `json:"size"`
	SHA256 string `json:"lfs_sha256"`
}

// differs says in what a file of a snapshot is not the one in the list, "" for
// nothing.
func (l listedFile) differs(size int64, nameHash string) string {
	switch {
	case l.Size != nil && *l.Size != size:
		return fmt.Sprintf("has %d bytes in the cache, and %d in the list of the repository's files", size, *l.Size)
	case l.SHA256 != "" && nameHash != "" && l.SHA256 != nameHash:
		return fmt.Sprintf("is called %s in the cache, and %s in the list of the repository's files", nameHash,
			errtext.Quote(l.SHA256))
	}
	return ""
}

// checkWhole warns of a snapshot that lacks files of its commit, where the cache
// says which those are: a snapshot holds what somebody asked for. A file that is cut
// short, or another one, is damaged.
func (p *packer) checkWhole(root *os.Root, s *snapshot, rules rules) error {
	commit, below := s.commit()
	list := "trees/" + commit + ".json"
	raw, err := readSmall(localfile.FS(root), list, list, maxTreeBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var tree struct {
		Version int                   `json:"format_version"`
		Files   map[string]listedFile `json:"files"`
	}
	if json.Unmarshal(raw, &tree) != nil || tree.Version != 1 {
		return nil //nolint:nilerr // another version's: whose tools do without it, too
	}
	var missing []string
	total := 0
	have := map[string]*file{}
	for _, f := range p.files {
		have[f.path] = f
	}
	for name, listed := range tree.Files {
		rel, in := strings.CutPrefix(name, below+"/")
		if below != "." && !in || rules.leavesPath(rel) {
			continue
		}
		total++
		if _, err := root.Lstat(path.Join(s.base, rel)); err != nil {
			missing = append(missing, errtext.Quote(rel))
			continue
		}
		f := have[modelFolder+rel]
		if f == nil {
			continue
		}
		if what := listed.differs(f.size, f.nameHash); what != "" {
			err := p.broken(f.path, carton.ErrChecksum, errors.New("is damaged: it "+what))
			if err != nil {
				return hintToDownload(err)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		p.warnf("the snapshot lacks %d of the %d files that the repository has at this commit: %s; hf download "+
			"fetches them",
			len(missing), total, firstOf(missing, 3))
	}
	return nil
}

// hintToDownload says what mends a cache.
func hintToDownload(err error) error {
	return hint.With(err, "hf download fetches what is missing; remove what is damaged first")
}

// firstOf lists the first few of some names.
func firstOf(names []string, most int) string {
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// DefaultName is what a carton of a file or folder is called, without an
// extension: a snapshot of a hub's cache by its repository.
func DefaultName(name string) (string, error) {
	at, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		s, err := findSnapshot(at)
		if err != nil {
			return "", err
		}
		if s == nil {
			return filepath.Base(at), nil
		}
		return path.Base(s.repository()), nil
	}
	return filekind.TrimFormat(filepath.Base(at)), nil
}
