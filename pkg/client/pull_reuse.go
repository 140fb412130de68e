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
	if c.addCarton(ctx, copies, location.Location{Path: out}) != nil && o.Unpack != "" {
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
	if !loc.IsLocal() {
		err := errors.New("is not on this machine")
		return hint.With(err, "name a file or folder: what it has of the model is copied from there")
	}
	fi, err := os.Stat(loc.Path)
	_, listed := os.Lstat(filepath.Join(loc.Path, carton.ManifestName))
	if loc.Kind != location.KindPath || err != nil || !fi.IsDir() || !errors.Is(listed, fs.ErrNotExist) {
		return c.addCarton(ctx, copies, loc)
	}
	for _, folder := range []string{folder, "", "model"} {
		if err := copies.AddFolder(loc.Path, folder); err != nil {
			return err
		}
	}
	return nil
}

// addCarton adds the carton that a file, folder or image layout is. Members that it
// only links to are none that it has.
func (c *call) addCarton(ctx context.Context, copies *carton.Copies, loc location.Location) error {
	src, err := c.open(ctx, loc, OpenOptions{unlinked: true})
	if err != nil {
		return err
	}
	if err := copies.AddCarton(ctx, loc.String(), src); err != nil {
		src.Close()
		return err
	}
	return nil
}
