package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
)

// copies opens what is on this machine of the model: what is replaced, where it can
// be read at all, and what From names.
func (c *call) copies(ctx context.Context, o PullOptions, out string) (_ *carton.Copies, err error) {
	copies := new(carton.Copies)
	defer func() {
		if err != nil {
			copies.Close()
		}
	}()
	for _, name := range o.From {
		if err := c.addFrom(ctx, copies, name, o.Folder); err != nil {
			return nil, fmt.Errorf("take from %s: %w", secret.Redact(name), err)
		}
	}
	if !o.Force {
		return copies, nil
	}
	if addCarton(ctx, copies, out) != nil && o.Unpack != "" {
		_ = copies.AddFolder(out, o.Folder) // whatever it is, nothing of it is believed
	}
	return copies, nil
}

// addFrom adds what From names. folder is the one that is pulled.
func (c *call) addFrom(ctx context.Context, copies *carton.Copies, name, folder string) error {
	loc, err := location.Parse(name)
	if err != nil {
		return err
	}
	switch loc.Kind {
	case location.KindPath:
	case location.KindLayout:
		src, err := c.open(ctx, loc, OpenOptions{})
		if err != nil {
			return err
		}
		return addSource(ctx, copies, name, src)
	default:
		err := errors.New("is not on this machine")
		return hint.With(err, "name a file or folder: what it has of the model is copied from there")
	}
	if fi, err := os.Stat(loc.Path); err != nil || !fi.IsDir() {
		return addCarton(ctx, copies, loc.Path)
	}
	if _, err := os.Lstat(filepath.Join(loc.Path, carton.ManifestName)); !errors.Is(err, fs.ErrNotExist) {
		return addCarton(ctx, copies, loc.Path)
	}
	for _, folder := range []string{folder, "", "model"} {
		if err := copies.AddFolder(loc.Path, folder); err != nil {
			return err
		}
	}
	return nil
}

// addCarton adds the carton that a file or folder is.
func addCarton(ctx context.Context, c *carton.Copies, name string) error {
	src, err := openPath(name)
	if err != nil {
		return err
	}
	return addSource(ctx, c, name, src)
}

func addSource(ctx context.Context, c *carton.Copies, name string, src carton.Source) error {
	err := c.AddCarton(ctx, name, src)
	if err != nil {
		src.Close()
	}
	return err
}
