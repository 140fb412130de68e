package cartonoci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/opencontainers/go-digest"
)

// cartonExt is what a carton's file name ends in.
const cartonExt = ".carton"

// defaultName names the file that a pull writes where nobody did.
func defaultName(loc Location, d digest.Digest) (string, error) {
	var base string
	switch loc.Kind {
	case KindRegistry:
		base = path.Base(loc.Repository)
	case KindLayout:
		dir, err := filepath.Abs(loc.Path)
		if err != nil {
			return "", err
		}
		base = filepath.Base(dir)
	case KindURL:
		u, err := url.Parse(loc.URL)
		if err != nil {
			return "", err
		}
		name := strings.TrimSuffix(path.Base(u.Path), cartonExt) + cartonExt
		if carton.CheckPath(name) != nil || strings.Contains(name, "/") || len(u.Path) < 2 {
			return "", hint.With(fmt.Errorf("the URL gives no file name"), "name the file: -o FILE%s", cartonExt)
		}
		return name, nil
	case kindTarget:
		base = "model"
	default:
		return "", hint.With(errors.New("got a carton, and no file or folder to write"), "name one: -o FILE%s, --unpack DIR", cartonExt)
	}
	if loc.Tag != "" && loc.Digest == "" {
		return base + "-" + loc.Tag + cartonExt, nil
	}
	return base + "-" + d.Encoded()[:12] + cartonExt, nil
}

// alreadyHere reports whether name is, whole, what the pull would make. Anything
// else of that name is an error wrapping carton.ErrExist. What a killed pull left
// beside it is removed then.
func alreadyHere(ctx context.Context, name, modelHash string, opts PullOptions) (bool, error) {
	_, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || opts.Unpack != "" && isEmpty(name) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	what, err := compare(ctx, name, modelHash, opts)
	switch {
	case err != nil:
		return false, err
	case what == "":
		place.Tidy(name)
		return true, nil
	}
	return false, hint.With(&carton.Error{Path: name, Kind: carton.ErrExist, Msg: "exists, and " + what}, "--force replaces it")
}

// compare says in what the carton called name differs from what the pull would
// make, "" for nothing.
func compare(ctx context.Context, name, modelHash string, opts PullOptions) (string, error) {
	if opts.Folder != "" || len(opts.Include)+len(opts.Exclude) > 0 {
		return "a choice of members has no hash to compare", nil
	}
	open := carton.OpenDir
	if opts.Unpack == "" {
		open = openFile
	}
	src, err := open(name)
	if err != nil {
		return fmt.Sprintf("is no such carton: %v", err), nil
	}
	defer src.Close()
	if got := src.Manifest().ModelHash(); got != modelHash {
		return fmt.Sprintf("is another model: got the model hash %s, want %s", got, modelHash), nil
	}
	if thin := src.Links() != nil; thin != opts.Thin {
		return map[bool]string{true: "is thin", false: "is not thin"}[thin], nil
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

// isEmpty reports whether name is a folder with nothing in it.
func isEmpty(name string) bool {
	entries, err := os.ReadDir(name)
	return err == nil && len(entries) == 0
}

// openFile opens a carton that must be a zip.
func openFile(name string) (carton.Source, error) {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		err = errors.New("got a folder, want a file")
	}
	if err != nil {
		return nil, err
	}
	return carton.Open(name)
}

func trimSlash(s string) string { return strings.TrimRight(s, "/") }
