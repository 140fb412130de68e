package carton

import (
	"context"
	"errors"
	"fmt"
)

// Check finds what is wrong with a carton's description of itself: every field
// of carton.toml and tensor_data/index.toml, the references between them and
// to misc/, the types, shapes and lengths of tensors as far as they are known,
// what lies where the format has no place for it, MANIFEST's form and member
// names. Of the members it reads carton.toml and index.toml alone.
//
// What the format's own loader fails on is found, too: see [SeverityLoader].
//
// What it finds is in the findings; the error is for a source that can't be
// read.
func Check(ctx context.Context, src Source) ([]Finding, error) {
	members, err := src.Members(ctx)
	if err != nil {
		return nil, err
	}
	found, _, err := check(ctx, src, members)
	return found, err
}

// check is Check, and gives the index of tensors if it can be used.
func check(ctx context.Context, src Source, members []Member) ([]Finding, *TensorIndex, error) {
	c := &checker{src: src, members: members}
	c.checkManifest()
	info, err := c.readInfo(ctx)
	if err != nil {
		return nil, nil, err
	}
	index, err := c.readIndex(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.checkLayout()
	if index != nil {
		c.checkTensors(index)
		c.checkUnlisted(index)
	}
	if info != nil {
		c.checkDescription(info)
		c.checkReferences(info, index)
	}
	return c.findings, index, nil
}

type checker struct {
	src      Source
	members  []Member // sorted
	findings []Finding
}

func (c *checker) find(s Severity, kind error, path, format string, args ...any) {
	c.findings = append(c.findings, Finding{Severity: s, Path: path, Err: errorf(kind, path, format, args...)})
}

// checkManifest finds what is odd, but no error, in MANIFEST and the names that
// it lists.
func (c *checker) checkManifest() {
	for _, w := range c.src.Manifest().Warnings() {
		c.find(SeverityWarning, ErrFormat, ManifestName, "%s", w)
	}
	c.findings = append(c.findings, c.src.Findings()...)
	for _, m := range c.members {
		if why := unportable(m.Path); why != "" {
			c.find(SeverityWarning, ErrInsecurePath, m.Path, "%s", why)
		}
	}
}

// readInfo reads carton.toml; nil, and findings, where it can't be used.
func (c *checker) readInfo(ctx context.Context) (*Info, error) {
	b, err := readInfo(ctx, c.src)
	if err != nil {
		return nil, c.contentError(InfoName, err)
	}
	info, f := parseInfo(b)
	c.findings = append(c.findings, f.list...)
	return info, nil
}

// readIndex reads tensor_data/index.toml; nil, and findings, where it can't be
// used.
func (c *checker) readIndex(ctx context.Context) (*TensorIndex, error) {
	b, err := readIndex(ctx, c.src)
	if err != nil {
		return nil, c.contentError(IndexName, err)
	}
	if b == nil {
		c.find(SeverityLoader, ErrFormat, IndexName,
			loaderFails+"is missing, and should be there, if empty: tensor = []")
		return emptyTensorIndex(), nil
	}
	index, f := parseIndex(b)
	c.findings = append(c.findings, f.list...)
	return index, nil
}

// contentError makes a finding of an error that is the carton's fault, and
// returns any other.
func (c *checker) contentError(path string, err error) error {
	f, ok := findingOf(path, err)
	if !ok {
		return err
	}
	c.findings = append(c.findings, f)
	return nil
}

// findingOf makes a finding of an error in a member's content; ok is false
// where the error is another.
func findingOf(path string, err error) (f Finding, ok bool) {
	var e *Error
	if !errors.As(err, &e) {
		return Finding{}, false
	}
	f = Finding{Severity: SeverityError, Path: path, Err: e}
	switch {
	case errors.Is(e.Kind, ErrLink):
		f.Severity = SeverityWarning
		f.Err = errorf(ErrLink, path, "is linked, and was not checked")
	case !errors.Is(err, ErrFormat) && !errors.Is(err, ErrChecksum) && !errors.Is(err, ErrLimit):
		return f, false
	}
	return f, true
}

// size returns a member's size; ok is false where there is no such member. The
// size is -1 where it is not known.
func (c *checker) size(path string) (size int64, ok bool) {
	m, ok := findMember(c.members, path)
	return m.Size, ok
}

// checkTensors compares the index with the files that it names.
func (c *checker) checkTensors(index *TensorIndex) {
	for i, t := range index.Tensors {
		if t.File == "" {
			continue
		}
		c.checkSuffix(i, t)
		size, ok := c.size(t.Path())
		at := fmt.Sprintf("tensor %d (%s)", i+1, quoteShort(t.Name))
		switch want := t.Elements() * t.DType.Size(); {
		case !ok:
			c.find(SeverityError, ErrFormat, IndexName, "%s: there is no file %s", at, quotePath(t.Path()))
		case t.DType == String || t.DType == "" || t.Shape == nil || size < 0:
		case size != want:
			c.find(SeverityError, ErrFormat, t.Path(), "is %d bytes long, and should be %d: %s %v of %s", size, want,
				t.DType, t.Shape, at)
		}
	}
}
