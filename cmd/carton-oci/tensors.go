package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/inspect"
)

func (s *session) tensorsCommand() *cli.Command {
	var o inspect.Options
	var file string
	var force bool
	return &cli.Command{
		Name:      "tensors",
		Usage:     "list a model's tensors, or fetch one of them",
		ArgsUsage: "SOURCE [GLOB | NAME -o FILE]",
		UsageText: `carton-oci tensors m.carton '*.bias'
carton-oci tensors ghcr.io/org/m:1 layers.0.weight -o weight.npy`,
		Description: `Lists name, type, shape and size of every tensor in safetensors and GGUF files,
PT2 archives and tensor_data. Only headers are read. GLOB chooses by name; in it
* stands for anything, dots and slashes too. Where a file could not be looked
into the others are listed, and the exit code is not 0: it is 3 where that file
is broken.

With -o it fetches the elements of one tensor, by range where that is possible:
nothing else of the file is downloaded. A range can't be checked against the
model hash, and is called unverified; where all of the file had to be read, it
was checked. FILE ends in
  .npy           for numpy, which has no BF16, F8, F6 and F4
  .safetensors   for any type of that format
  .bin           for its bytes alone, whatever they are: of a quantised tensor
                 of a GGUF file (Q4_K, IQ2_XS and the like) its blocks

A name in several files, or in several models of an archive, needs --member or
--model. Names in weights go before those in tensor_data.`,
		Flags: s.flags([]cli.Flag{
			text(&file, "output", "fetch the tensor NAME into `FILE`, .npy, .safetensors or .bin", "o"),
			text(&o.Member, "member", "look only into the file at `PATH` in the carton"),
			text(&o.Model, "model", "look only at the model `NAME` of PT2 archives"),
			yes(&force, "force", "replace what is there"),
		}, s.sourceFlags()),
		Action: s.command(func(c *cli.Context) error {
			o.Concurrency = s.concurrency
			if file != "" {
				return s.fetchTensor(c, o, file, place.Options{Replace: force})
			}
			return s.listTensors(c, o)
		}),
	}
}

// tensorListing is what `tensors --format json` prints.
type tensorListing struct {
	subject
	Tensors []tensorItem   `json:"tensors"`
	Notes   []inspect.Note `json:"notes,omitempty"` // what could not be listed, or does not agree
}

type tensorItem struct {
	Name   string  `json:"name"`
	DType  string  `json:"dtype"` // as safetensors names it; "" where it is not known
	Shape  []int64 `json:"shape"` // null of a nested tensor
	Bytes  *int64  `json:"bytes"` // of the elements; null where it is not known
	Member string  `json:"member"`
	Model  string  `json:"model,omitempty"` // of a PT2 archive
	// Inner are the tensors that a nested one is made of.
	Inner []string `json:"inner,omitempty"`
}

func tensorItemOf(t inspect.Tensor) tensorItem {
	return tensorItem{t.Name, t.DType, t.Shape, known(t.Bytes), t.Member, t.Model, t.Inner}
}

func (s *session) listTensors(c *cli.Context, o inspect.Options) error {
	if err := onlyWith(c, "output", "force"); err != nil {
		return err
	}
	glob := "*"
	var names []string
	if c.NArg() > 1 {
		glob, names = c.Args().Get(1), []string{"GLOB"}
	}
	if _, err := path.Match(glob, ""); err != nil {
		return usagef("tensors", "%s: %v", quoted(glob), err)
	}
	src, err := s.openArg(c, names...)
	if err != nil {
		return err
	}
	defer src.Close()
	o.Local = true
	tensors, notes, err := inspect.Tensors(c.Context, src, o)
	if err != nil {
		return src.fail(err)
	}
	chosen := tensors[:0]
	for _, t := range tensors {
		// A name may hold characters that mean something in a pattern.
		if ok, _ := inspect.Match(glob, t.Name); ok || t.Name == glob {
			chosen = append(chosen, t)
		}
	}
	s.warnUnlisted(src)
	s.printTensorList(src, chosen, notes)
	if err := unlisted(notes); err != nil {
		return src.fail(err)
	}
	if len(chosen) > 0 {
		return nil
	}
	switch {
	case glob != "*":
		return src.fail(&carton.Error{Kind: fs.ErrNotExist, Msg: "no tensor matches " + quoted(glob)})
	case o.Model != "":
		err := &carton.Error{Kind: fs.ErrNotExist, Msg: "no tensor is of a model " + quoted(o.Model)}
		return src.fail(withHint(err, "carton-oci inspect %s lists the models", src.name))
	case o.Member != "":
		s.notef("%s holds no tensors that can be listed", o.Member)
	default:
		s.notef("no tensors: listed are those of safetensors and GGUF files, PT2 archives and tensor_data")
	}
	return nil
}

func (s *session) printTensorList(src *source, tensors []inspect.Tensor, notes []inspect.Note) {
	if !s.json {
		s.warnOf(notes)
	}
	names := listOf(tensors, func(t inspect.Tensor) string { return t.Name })
	s.result(tensorListing{src.subject(), listOf(tensors, tensorItemOf), notes}, names,
		func() { s.printTensorTable(tensors) })
}

func (s *session) printTensorTable(tensors []inspect.Tensor) {
	models := severalModels(tensors)
	rows := [][]string{{"NAME", "TYPE", "SHAPE", "SIZE", "MEMBER"}}
	for _, t := range tensors {
		member := t.Member
		if models[t.Member] {
			member += " (" + t.Model + ")"
		}
		rows = append(rows, []string{t.Name, shownType(t.DType), shownShape(t.Shape), errtext.Size(t.Bytes), member})
	}
	if len(rows) > 1 {
		s.table(rows)
	}
}

// warnOf warns of what could not be read, or does not agree.
func (s *session) warnOf(notes []inspect.Note) {
	for _, n := range notes {
		s.warnf("%s: %s", n.Member, n.Text)
	}
}

// unlisted is the error for files that could not be looked into, which makes a
// list that is not whole; nil where there are none. Why each could not be read
// has been said.
func unlisted(notes []inspect.Note) error {
	var errs []error
	for _, n := range notes {
		if n.Err != nil {
			errs = append(errs, n.Err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	text := "the list is not whole: " + count(len(errs), "file") + " could not be looked into"
	return &listedError{text: text, err: errors.Join(errs...)}
}

// severalModels returns the members whose tensors are of more than one model.
func severalModels(tensors []inspect.Tensor) map[string]bool {
	first, several := map[string]string{}, map[string]bool{}
	for _, t := range tensors {
		if model, ok := first[t.Member]; ok && model != t.Model {
			several[t.Member] = true
		}
		first[t.Member] = t.Model
	}
	return several
}

func shownType(dtype string) string { return cmp.Or(dtype, "?") }

// shownShape writes a shape as carton.toml does; that of a nested tensor is
// empty.
func shownShape(shape []int64) string {
	if shape == nil {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}
