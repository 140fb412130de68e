package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/opencontainers/go-digest"
)

// defaultName names the file that a pull writes where nobody did.
func defaultName(loc location.Location, d digest.Digest) (string, error) {
	var base string
	switch loc.Kind {
	case location.KindRegistry:
		base = path.Base(loc.Repository)
	case location.KindLayout:
		dir, err := filepath.Abs(loc.Path)
		if err != nil {
			return "", err
		}
		base = filepath.Base(dir)
	case location.KindArchive:
		base = strings.TrimSuffix(filepath.Base(loc.Path), filepath.Ext(loc.Path))
		base = strings.TrimSuffix(base, ".oci")
	case location.KindURL:
		u, err := url.Parse(loc.URL)
		if err != nil {
			return "", err
		}
		name := strings.TrimSuffix(path.Base(u.Path), location.Ext) + location.Ext
		if carton.CheckPath(name) != nil || strings.Contains(name, "/") || len(u.Path) < 2 {
			return "", hint.With(fmt.Errorf("the URL gives no file name"), "name the file: %s FILE%s", hint.Output,
				location.Ext)
		}
		return name, nil
	default:
		return "", hint.With(errors.New("got a carton, and no file or folder to write"), "name one: %s FILE%s, %s DIR",
			hint.Output, location.Ext, hint.Unpack)
	}
	if loc.Tag != "" && loc.Digest == "" {
		return base + "-" + loc.Tag + location.Ext, nil
	}
	return base + "-" + d.Encoded()[:12] + location.Ext, nil
}

// alreadyHere reports whether name is, whole, what the pull would make: for links,
// which are nil where no thin carton is asked for. Anything else of that name is an
// error wrapping carton.ErrExist. What a killed pull left beside it is removed then.
func alreadyHere(
	ctx context.Context, src carton.Source, name string, links *carton.Links, opts PullOptions,
) (bool, error) {
	_, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || opts.Unpack != "" && isEmpty(name) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	what, err := compare(ctx, name, src, links, opts)
	switch {
	case err != nil:
		return false, err
	case what == "":
		place.Tidy(name)
		return true, nil
	}
	return false, mayForce(ctx, src, name, opts,
		&carton.Error{Path: name, Kind: carton.ErrExist, Msg: "exists, and " + what})
}

// mayForce adds to the error about an output that exists what can be done.
func mayForce(ctx context.Context, src carton.Source, name string, opts PullOptions, err error) error {
	fi, lerr := os.Lstat(name)
	switch {
	case lerr != nil:
		return err
	case fi.Mode()&fs.ModeSymlink != 0:
		return hint.With(err, "name what the symlink points to, or another place")
	case opts.Unpack == "" && fi.IsDir():
		return hint.With(err, "name a file; %s %s writes one into the folder, %s DIR the members into a folder of "+
			"their own", hint.OutputDir, name, hint.Unpack)
	case opts.Unpack == "" && !fi.Mode().IsRegular(), opts.Unpack != "" && !fi.IsDir():
		return hint.With(err, "give another name")
	case opts.Unpack == "":
		return hint.With(err, "%s replaces it", hint.Force)
	}
	switch strange := carton.CheckReplace(ctx, name, src, opts.extract()); {
	case strange == nil:
		return hint.With(err, "%s replaces it", hint.Force)
	case errors.Is(strange, carton.ErrExist): // force does not
		return fmt.Errorf("%w; %w", err, strange)
	}
	return err
}

// extract are the options of an extraction.
func (o PullOptions) extract() carton.ExtractOptions {
	return carton.ExtractOptions{
		Replace: o.Force, Include: o.Include, Exclude: o.Exclude, Folder: o.Folder,
		Concurrency: o.Concurrency, Progress: o.Progress,
	}
}

// compare says in what the carton called name differs from what the pull would
// make, "" for nothing.
func compare(
	ctx context.Context, name string, want carton.Source, links *carton.Links, opts PullOptions,
) (string, error) {
	if why, err := place.Foreign(name, opts.Unpack != ""); why != "" || err != nil {
		return why, err
	}
	if opts.Folder != "" || len(opts.Include)+len(opts.Exclude) > 0 {
		return carton.CompareFolder(ctx, name, want, opts.extract())
	}
	open := carton.OpenDir
	if opts.Unpack == "" {
		open = carton.Open
	}
	src, err := open(name)
	if err != nil {
		return fmt.Sprintf("is not such a carton: %v", err), nil
	}
	defer src.Close()
	modelHash := want.Manifest().ModelHash()
	if got := src.Manifest().ModelHash(); got != modelHash {
		return fmt.Sprintf("is another model: got the model hash %s, want %s", got, modelHash), nil
	}
	if what := compareLinks(src.Links(), links); what != "" {
		return what, nil
	}
	report, err := carton.Verify(ctx, src, carton.VerifyOptions{Concurrency: opts.Concurrency, Progress: opts.Progress})
	if err != nil {
		return "", err
	}
	for _, f := range report.Findings {
		if errors.Is(f.Err, carton.ErrChecksum) {
			return fmt.Sprintf("is damaged: %v", f.Err), nil
		}
	}
	return "", nil
}

// compareLinks says in what the LINKS of two cartons differ.
func compareLinks(got, want *carton.Links) string {
	switch {
	case got == nil && want == nil:
		return ""
	case want == nil:
		return "is thin"
	case got == nil:
		return "is not thin"
	case !bytes.Equal(got.Marshal(), want.Marshal()):
		return "has other links"
	}
	return ""
}

// isEmpty reports whether name is a folder with nothing in it.
func isEmpty(name string) bool {
	entries, err := os.ReadDir(name)
	return err == nil && len(entries) == 0
}

// sameFile reports whether two paths are of one file or folder.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// refuseInside refuses to write into what is read: a carton's folder, or an image
// layout. Either would be another one, or broken, when it has been read.
func refuseInside(from location.Location, out string) error {
	if !from.IsLocal() || !place.Inside(out, from.Path) {
		return nil
	}
	err := location.Errorf(out, "would be written into what is read, %s", from)
	return hint.With(err, "name a place outside of it")
}
