package pmf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"
)

// The names of the format.
const (
	metadataName     = "metadata.yaml"
	metadataAltName  = "Metadata.yaml" // in the specification's text
	dataFolder       = "data"
	checkpointFolder = "data/checkpoints"
	buildParameters  = "data/build_parameters.yaml"
)

// metadataNames returns which documents the root of fsys holds. A folder's
// listing is asked: some file systems know a file by both names.
func metadataNames(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if (e.Name() == metadataName || e.Name() == metadataAltName) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// errNoFile is the error for a document that is a folder, or something else that
// can't be read to its end.
var errNoFile = errors.New("is no file")

// readDocument reads a document, one byte past the limit at most.
func readDocument(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	return io.ReadAll(io.LimitReader(f, MaxMetadataBytes+1))
}

// tree is a tree that is being read. Its checks are those of
// plums/model/validation/structure.py.
type tree struct {
	*report
	fsys   fs.FS
	nested bool // in data/initialisation of another
	meta   *metadata
}

// readTree reads a tree, and what it nests.
func readTree(fsys fs.FS, depth int) (*Model, *report, error) {
	r := &report{file: metadataName}
	names, err := metadataNames(fsys)
	if err != nil {
		return nil, nil, err
	}
	switch len(names) {
	case 0:
		r.violate(RuleMetadata, metadataName, 0, "is missing")
		return &Model{}, r, nil
	case 2:
		r.violate(RuleMetadataTwice, metadataAltName, 0, "is there beside %s: remove one of them", metadataName)
	}
	r.file = names[len(names)-1] // metadata.yaml where there are both: it sorts last
	raw, err := readDocument(fsys, r.file)
	switch {
	case errors.Is(err, errNoFile), leadsNowhere(fsys, r.file, err):
		r.violate(RuleMetadata, r.file, 0, "%v", errNoFile)
		return &Model{}, r, nil
	case err != nil:
		return nil, nil, err
	}
	t := &tree{report: r, fsys: fsys, nested: depth > 0, meta: r.readMetadata(raw)}
	m := t.meta.model
	m.MetadataFile = r.file
	return m, r, t.check(depth)
}

// check compares the tree with its document.
func (t *tree) check(depth int) error {
	if err := t.checkConfiguration(); err != nil {
		return err
	}
	info, err := fs.Stat(t.fsys, dataFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist), leadsNowhere(t.fsys, dataFolder, err), err == nil && !info.IsDir():
		t.violate(RuleData, dataFolder, 0, "is missing, or no folder")
		return nil
	case err != nil:
		return err
	}
	if err := t.checkBuildParameters(); err != nil {
		return err
	}
	if t.folder(checkpointFolder, RuleCheckpointFolder) {
		if err := t.checkCheckpoints(); err != nil {
			return err
		}
	}
	if t.folder(InitialisationFolder, RuleInitFolder) {
		return t.checkInitialisation(depth)
	}
	return nil
}

// folder reports whether a folder of the format can be listed. It may be missing;
// anything else in its place breaks the rule.
func (t *tree) folder(dir string, rule Rule) bool {
	info, err := fs.Stat(t.fsys, dir)
	switch {
	case err == nil && !info.IsDir():
		t.violate(rule, dir, 0, "is no folder")
	case leadsNowhere(t.fsys, dir, err):
		t.violate(RuleSpecial, dir, 0, "is a symlink that leads to no folder of the tree")
	default:
		return true // listing it says what else is wrong
	}
	return false
}

// leadsNowhere reports whether err is that name, or a folder on the way to it, is
// no such thing: a symlink whose target is not in the tree, or a file.
func leadsNowhere(fsys fs.FS, name string, err error) bool {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return false
	}
	if info, err := fs.Lstat(fsys, name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return true
	}
	return errors.Is(err, syscall.ENOTDIR)
}

// isFile reports whether a regular file lies at name, or a symlink to one.
func (t *tree) isFile(name string) (bool, error) {
	info, err := fs.Stat(t.fsys, name)
	if errors.Is(err, fs.ErrNotExist) || leadsNowhere(t.fsys, name, err) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// checkConfiguration wants the configuration as a file of the root.
func (t *tree) checkConfiguration() error {
	c := t.meta.configuration
	if c.Path == "" {
		return nil // said already
	}
	if path.Dir(c.Path) != "." || c.Path == "." {
		c.value.violate(RuleConfiguration, "is %s, and must be a file in the root", short(c.Path))
		return nil
	}
	ok, err := t.isFile(c.Path)
	if err != nil {
		return err
	}
	if !ok {
		c.value.violate(RuleConfiguration, "there is no file %s", short(c.Path))
		return nil
	}
	t.meta.model.Configuration = c.Path
	t.sum(c, c.Path)
	return nil
}

func (t *tree) checkBuildParameters() error {
	switch _, err := fs.Stat(t.fsys, buildParameters); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !leadsNowhere(t.fsys, buildParameters, err):
		return err
	}
	ok, err := t.isFile(buildParameters)
	if err != nil {
		return err
	}
	if !ok {
		t.violate(RuleBuildParameters, buildParameters, 0, "is no file")
		return nil
	}
	t.meta.model.BuildParameters = buildParameters
	raw, err := readDocument(t.fsys, buildParameters)
	if err != nil {
		return err
	}
	if len(raw) > MaxMetadataBytes {
		t.warn(RuleBuildParameters, buildParameters, 0, "is longer than %d bytes, and was not checked",
			MaxMetadataBytes)
		return nil
	}
	r := &report{file: buildParameters}
	doc := r.document(raw)
	if doc.there() && !doc.maps() && !doc.isNull() {
		r.violate(RuleBuildParameters, buildParameters, doc.line(), "is %s, and must be a mapping", doc.describe())
	}
	if len(bytes.TrimSpace(raw)) > 0 { // no parameters
		t.violations = append(t.violations, r.violations...)
	}
	return nil
}

// list returns the names of files in a folder, and reports what else is there
// as a violation of rule. A folder that is missing is a warning: cartons, git
// and others keep no empty ones.
func (t *tree) list(dir string, rule Rule) ([]string, error) {
	entries, err := fs.ReadDir(t.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if !t.nested || dir != checkpointFolder {
			t.warn(RuleFolder, dir, 0, "is missing, and taken for empty")
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entries) > MaxFiles {
		return nil, fmt.Errorf("%s: holds more than %d files", dir, MaxFiles)
	}
	var names []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := fs.Stat(t.fsys, name)
			if err != nil {
				t.violate(RuleSpecial, name, 0, "is a symlink that leads to no file of the tree")
				continue
			}
			mode = info.Mode().Type()
		}
		switch {
		case mode.IsDir():
			t.violate(rule, name, 0, "is a folder, and only files may be there")
		case mode != 0:
			t.violate(RuleSpecial, name, 0, "is neither a file nor a folder")
		default:
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// checkCheckpoints compares data/checkpoints with what is registered. Only the
// last part of a path counts: the library's writer leaves a nested tree's at
// ".".
func (t *tree) checkCheckpoints() error {
	names, err := t.list(checkpointFolder, RuleCheckpointFolder)
	if err != nil {
		return err
	}
	registered := map[string]bool{}
	for i := range t.meta.checkpoints {
		t.meta.model.Checkpoints[i].Path = ""
	}
	if t.nested {
		if len(names) > 0 {
			t.warn(RuleNestedCheckpoint, checkpointFolder, 0, "holds files, and a nested tree has none")
		}
		return nil
	}
	for i, c := range t.meta.checkpoints {
		if c.Path == "" {
			continue // said already
		}
		name := path.Base(c.Path)
		file := path.Join(checkpointFolder, name)
		t.meta.model.Checkpoints[i].Path = file
		registered[name] = true
		switch {
		case !slices.Contains(names, name):
			c.value.violate(RuleCheckpoint, "there is no file %s", short(file))
		default:
			if c.Path != file {
				c.value.warn(RuleCheckpointAt, "is %s, and the file is %s", short(c.Path), short(file))
			}
			t.sum(c.located, file)
		}
	}
	for _, name := range names {
		if !registered[name] {
			t.warn(RuleUnregistered, path.Join(checkpointFolder, name), 0, "is no registered checkpoint's file")
		}
	}
	return nil
}
