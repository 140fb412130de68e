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
	loose, err := s.pack(c, []string{loc.Path}, opts)
	if err == nil && len(loose.LeftOut) > 0 {
		s.notef("left out %s", s.shownLeftOut(loose.LeftOut))
	}
	return loose, err
}

// lacksManifest reports whether a folder has a carton.toml and no MANIFEST.
func lacksManifest(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, carton.ManifestName))
	info, infoErr := os.Stat(filepath.Join(dir, carton.InfoName))
	return os.IsNotExist(err) && infoErr == nil && info.Mode().IsRegular()
}

// isCartonFolder reports whether a folder is a carton: it has MANIFEST and
// carton.toml. Any other file may be called MANIFEST.
func isCartonFolder(dir string) bool {
	for _, name := range []string{carton.ManifestName, carton.InfoName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// adviseToUpdate adds to an error about a folder that is a carton what to do if
// its files were changed on purpose.
func adviseToUpdate(name string, err error) error {
	var about *carton.Error
	if !isCartonFolder(name) || !errors.As(err, &about) ||
		!errors.Is(err, carton.ErrChecksum) && !strings.Contains(about.Msg, carton.ManifestName) {
		return err
	}
	return withHint(err, "if the files were changed on purpose: carton-oci pack %s --update -o FILE.carton, or push with --update, makes a new MANIFEST", name)
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
	if locErr != nil || loc.Kind != cartonoci.KindPath || !errors.Is(err, carton.ErrFormat) && !errors.Is(err, carton.ErrChecksum) {
		return err
	}
	info, statErr := os.Stat(loc.Path)
	if statErr != nil || !info.IsDir() && strings.HasSuffix(loc.Path, ".carton") {
		return err
	}
	if isCartonFolder(loc.Path) {
		return adviseToUpdate(loc.Path, err)
	}
	return withHint(err, "--runner NAME --framework-version REQ packs it on the way: carton-oci pack --help")
}
