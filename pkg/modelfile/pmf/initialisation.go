package pmf

import (
	"errors"
	"io/fs"
	"path"
	"slices"
)

// checkInitialisation compares data/initialisation with what the document says
// it is: nothing, a tree, or one file.
func (t *tree) checkInitialisation(depth int) error {
	isTree, err := t.holdsTree()
	if err != nil {
		return err
	}
	in := t.meta.init
	if isTree {
		switch in.form {
		case initFile:
			in.at.violate(RuleInitNoFile, "says file, and a tree lies in %s", InitialisationFolder)
		case initNull:
			t.warn(RuleInitNull, InitialisationFolder, 0, "holds a tree, and initialisation is null")
		}
		return t.readNested(depth)
	}
	names, err := t.list(InitialisationFolder, RuleInitFolder)
	if err != nil {
		return err
	}
	switch in.form {
	case initNull:
		if len(names) > 0 {
			t.warn(RuleInitNull, InitialisationFolder, 0, "holds %s, and initialisation is null", short(names[0]))
		}
	case initPMF:
		in.at.violate(RuleInitNoPMF, "says pmf, and there is no %s in %s", metadataName, InitialisationFolder)
	case initFile:
		t.checkInitialFile(names)
	}
	return nil
}

// holdsTree reports whether data/initialisation holds a document.
func (t *tree) holdsTree() (bool, error) {
	sub, err := fs.Sub(t.fsys, InitialisationFolder)
	if err != nil {
		return false, err
	}
	names, err := metadataNames(sub)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return len(names) > 0, err
}

// readNested reads the tree in data/initialisation. What is wrong with it is
// wrong with this one.
func (t *tree) readNested(depth int) error {
	if depth+1 > MaxNesting {
		t.violate(RuleNesting, InitialisationFolder, 0, "trees nest deeper than %d", MaxNesting)
		return nil
	}
	sub, err := fs.Sub(t.fsys, InitialisationFolder)
	if err != nil {
		return err
	}
	m, r, err := readTree(sub, depth+1)
	if err != nil {
		return err
	}
	for _, v := range r.violations {
		v.Path = InitialisationFolder + "/" + v.Path
		t.violations = append(t.violations, v)
	}
	for _, v := range r.warnings {
		v.Path = InitialisationFolder + "/" + v.Path
		t.warnings = append(t.warnings, v)
	}
	t.meta.model.Nested = m
	for _, s := range m.sums {
		s.Path = path.Join(InitialisationFolder, s.Path)
		s.at = InitialisationFolder + "/" + s.at
		t.meta.model.sums = append(t.meta.model.sums, s)
	}
	if t.meta.init.form == initPMF {
		t.compareNested(m)
	}
	return nil
}

// compareNested compares what initialisation.pmf says with the tree.
func (t *tree) compareNested(m *Model) {
	in := t.meta.init
	if ref := in.reference; ref.there() && (ref.kind() == kindString || ref.kind() == kindInteger) {
		if !slices.ContainsFunc(m.Checkpoints, func(c Checkpoint) bool { return c.identity == ref.identity() }) {
			ref.violate(RuleInitCheckpoint, "is %s, which is no registered checkpoint of the tree in %s",
				ref.describe(), InitialisationFolder)
		}
	}
	if in.id.there() && in.id.kind() == kindString && in.id.node.Value != m.ID {
		in.id.warn(RuleInitIdentity, "is %s, and the tree in %s is %s",
			short(in.id.node.Value), InitialisationFolder, short(m.ID))
	}
	if !in.name.isNull() && in.name.kind() == kindString && in.name.node.Value != m.Name {
		in.name.warn(RuleInitIdentity, "is %s, and the tree in %s is named %s",
			short(in.name.node.Value), InitialisationFolder, short(m.Name))
	}
	if in.Path != "" && in.Path != InitialisationFolder {
		in.value.warn(RuleInitialisationAt, "is %s, and the tree lies in %s", short(in.Path), InitialisationFolder)
	}
}

// checkInitialFile wants the one file that initialisation.file names.
func (t *tree) checkInitialFile(names []string) {
	in := t.meta.init
	if in.Path == "" {
		return // said already
	}
	name := path.Base(in.Path)
	file := path.Join(InitialisationFolder, name)
	if !slices.Contains(names, name) {
		in.value.violate(RuleInitNoFile, "there is no file %s", short(file))
		return
	}
	for _, other := range names {
		if other != name {
			t.violate(RuleInitExtra, path.Join(InitialisationFolder, other), 0,
				"lies beside %s, and only one file may be there", short(name))
		}
	}
	if in.Path != file {
		in.value.warn(RuleInitialisationAt, "is %s, and the file is %s", short(in.Path), short(file))
	}
	t.meta.model.Initialisation = []File{{Path: file, Hash: in.Hash}}
	t.sum(in.located, file)
}
