package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
	"github.com/urfave/cli/v2"
)

// packLoose packs the SOURCE of a push on the way, where a flag of packFlags
// says so, or where it is a folder with all of a carton but MANIFEST. It returns
// nil for any other. An image layout to push to must not lie in what is packed.
func (s *session) packLoose(c *cli.Context, source string, to cartonoci.Location) (*pack.Carton, error) {
	loc, err := cartonoci.ParseLocation(source)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	asked := ""
	for _, f := range packFlags() {
		if c.IsSet(f.Names()[0]) {
			asked = f.Names()[0]
			break
		}
	}
	switch {
	case asked == "" && (loc.Kind != cartonoci.KindPath || !lacksManifest(loc.Path)):
		return nil, nil
	case loc.Kind != cartonoci.KindPath:
		return nil, usagef("push", "--%s is for a folder or file that is packed on the way: got %s", asked, quoted(loc.Redacted()))
	}
	opts, err := packOptions(c)
	if err != nil {
		return nil, err
	}
	if to.Kind == cartonoci.KindLayout {
		if err := notInside("push", to.Path, packInputs([]string{loc.Path}, opts)); err != nil {
			return nil, withHint(err, "name a folder elsewhere: oci:DIR:TAG")
		}
	}
	return s.pack(c, []string{loc.Path}, opts)
}

// lacksManifest reports whether a folder has all of a carton but MANIFEST.
func lacksManifest(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, carton.ManifestName))
	info, err1 := os.Stat(filepath.Join(dir, carton.InfoName))
	model, err2 := os.Stat(filepath.Join(dir, "model"))
	return os.IsNotExist(err) && errors.Join(err1, err2) == nil && info.Mode().IsRegular() && model.IsDir()
}

// pushCarton pushes what was packed on the way, or else the SOURCE as it is.
func pushCarton(
	ctx context.Context, loose *pack.Carton, source, ref string, opts cartonoci.PushOptions,
) (*cartonoci.PushResult, error) {
	if loose == nil {
		result, err := cartonoci.Push(ctx, source, ref, opts)
		return result, adviseToPack(source, err)
	}
	defer loose.Close()
	return cartonoci.PushSource(ctx, loose, source, ref, opts)
}

// adviseToPack adds to the error of a push how what is no carton could be
// packed.
func adviseToPack(source string, err error) error {
	loc, locErr := cartonoci.ParseLocation(source)
	if locErr != nil || loc.Kind != cartonoci.KindPath || !errors.Is(err, carton.ErrFormat) {
		return err
	}
	info, statErr := os.Stat(loc.Path)
	if statErr != nil || !info.IsDir() && strings.HasSuffix(loc.Path, ".carton") {
		return err
	}
	if _, statErr := os.Stat(filepath.Join(loc.Path, carton.ManifestName)); info.IsDir() && statErr == nil {
		return err
	}
	return withHint(err, "--runner NAME --framework-version REQ packs it on the way: carton-oci pack --help")
}
