package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/npy"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/inspect"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/modelfile/safetensors"
)

// fetched is what `tensors NAME -o FILE --format json` prints.
type fetched struct {
	subject
	tensorItem
	Path string `json:"path"` // of the file that was written
	// Verified says that all of the member was read and had its hash. Else only a
	// range was read, which nothing can be held against.
	Verified bool `json:"verified"`
}

// fetchTensor is `tensors SOURCE NAME -o FILE`.
func (s *session) fetchTensor(c *cli.Context, o inspect.Options, file string, opts place.Options) error {
	form, err := tensorFormOf(file)
	if err != nil {
		return err
	}
	src, err := s.openArg(c, "NAME")
	if err != nil {
		return err
	}
	defer src.Close()
	if loc, err := location.Parse(c.Args().Get(0)); err == nil && loc.Path != "" {
		if err := notInside("tensors", file, []string{loc.Path}); err != nil {
			return err
		}
	}
	name := c.Args().Get(1)
	t, notes, err := inspect.Find(c.Context, src, name, o)
	if err != nil {
		s.warnOf(notes)
		return src.fail(hintNoTensor(err, src.name))
	}
	s.showProgress("tensors")
	verified, err := s.writeTensor(c.Context, src, t, form, file, opts)
	s.stopProgress()
	if err != nil {
		return src.fail(err)
	}
	s.printFetched(src, t, file, verified && src.loose == nil)
	return nil
}

// hintNoTensor says how to see which tensors there are, where there is none of
// the name.
func hintNoTensor(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return withHint(err, "carton-oci tensors %s lists what there is", name)
	}
	return err
}

// tensorForm is a sort of file for one tensor.
type tensorForm struct {
	name, ending string // the name is that of a format; "" of bytes alone
	holds        func(dtype string) bool
	// header writes what stands before the elements; they are the rest.
	header func(w io.Writer, t *inspect.Tensor) error
}

var tensorForms = []tensorForm{
	{"numpy", ".npy", npy.HasType, func(w io.Writer, t *inspect.Tensor) error {
		return npy.WriteHeader(w, t.DType, t.Shape)
	}},
	{"safetensors", ".safetensors", safetensors.HasType, func(w io.Writer, t *inspect.Tensor) error {
		return safetensors.WriteHeader(w, nil, []safetensors.Tensor{{Name: t.Name, DType: t.DType, Shape: t.Shape}})
	}},
	{"", ".bin", func(string) bool { return true }, func(io.Writer, *inspect.Tensor) error { return nil }},
}

// tensorFormOf chooses by the file's name.
func tensorFormOf(file string) (tensorForm, error) {
	for _, form := range tensorForms {
		if strings.EqualFold(filepath.Ext(file), form.ending) {
			return form, nil
		}
	}
	return tensorForm{}, usagef("tensors", "--output: got %s, want a name that ends in .npy, .safetensors or .bin",
		quoted(file))
}

// check says why the file can't hold a tensor, and which can.
func (f tensorForm) check(t *inspect.Tensor) error {
	if f.holds(t.DType) {
		return nil
	}
	err := fmt.Errorf("tensor %s: %s has no type %s", t.Name, f.name, shownType(t.DType))
	for _, other := range tensorForms {
		switch {
		case other.name == "":
			err = withHint(err, "its bytes as they are: -o FILE%s", other.ending)
		case other.holds(t.DType):
			err = withHint(err, "%s has it: -o FILE%s", other.name, other.ending)
		}
	}
	return err
}

// writeTensor puts the tensor's file in its place, whole or not at all.
func (s *session) writeTensor(
	ctx context.Context, src *source, t *inspect.Tensor, form tensorForm, file string, opts place.Options,
) (verified bool, err error) {
	if err := t.Readable(); err != nil {
		return false, err
	}
	if err := form.check(t); err != nil {
		return false, err
	}
	out, err := place.Create(file, opts)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Discard()) }()
	var header bytes.Buffer
	if err := form.header(&header, t); err != nil {
		return false, err
	}
	if _, err := out.WriteAt(header.Bytes(), 0); err != nil {
		return false, err
	}
	verified, err = inspect.Fetch(ctx, src, t, behind{out, int64(header.Len())}, inspect.FetchOptions{
		Concurrency: s.concurrency, Progress: s.progress,
	})
	if err != nil {
		return false, err
	}
	return verified, out.Commit()
}

// behind is the file from an offset on.
type behind struct {
	*place.File
	off int64
}

func (b behind) ReadAt(p []byte, off int64) (int, error)  { return b.File.ReadAt(p, b.off+off) }
func (b behind) WriteAt(p []byte, off int64) (int, error) { return b.File.WriteAt(p, b.off+off) }

func (s *session) printFetched(src *source, t *inspect.Tensor, file string, verified bool) {
	s.result(fetched{src.subject(), tensorItemOf(*t), file, verified}, []string{file}, func() {
		checked := "no"
		if verified {
			checked = "yes"
		}
		s.fields(
			[2]string{"tensor", t.Name},
			[2]string{"type", t.DType},
			[2]string{"shape", shownShape(t.Shape)},
			[2]string{"size", errtext.Size(t.Bytes)},
			[2]string{"member", t.Member},
			[2]string{"model", t.Model},
			[2]string{"verified", checked},
			[2]string{"path", file},
		)
	})
	if !verified && !s.json {
		s.warnf("unverified: only ranges of %s were read, and only all of it can be held against its hash", t.Member)
	}
}
