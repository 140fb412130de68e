package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/carton-oci/carton-oci/internal/testenv"
)

// versionRE is a tag of a release: what the go command takes for a version.
// https://go.dev/ref/mod#versions
var versionRE = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// platform is what a program is built for.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are those of a release, in the order of checksums.txt.
var platforms = []platform{
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

func main() {
	version := flag.String("version", "v0.0.0-dry.run", "make the release of `TAG`")
	out := flag.String("o", "dist", "write to the folder `DIR`, which is made anew")
	only := flag.String("platforms", "", "build for `LIST` (OS/ARCH, separated by commas) instead of all")
	flag.Parse()
	r := &release{repository: testenv.Root(), version: *version, out: *out, platforms: platforms}
	if *only != "" {
		r.platforms = nil
		for _, word := range strings.Split(*only, ",") {
			system, arch, _ := strings.Cut(word, "/")
			r.platforms = append(r.platforms, platform{system, arch})
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.make(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is made, and of what.
type release struct {
	repository string // a checkout; what is built is its HEAD
	version    string // with the v
	out        string
	platforms  []platform
	goCache    string // "" for the user's own

	source *source
	pages  []entry // what archives hold beside the program: man pages, completion
}

// number is the version without the v, as files and images have it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// file names a file of the release.
func (r *release) file(suffix string) string {
	return filepath.Join(r.out, program+"_"+r.number()+"_"+suffix)
}

const program = "carton-oci"

func (r *release) make(ctx context.Context) error {
	if !versionRE.MatchString(r.version) {
		return fmt.Errorf("got the version %q, want one such as v0.1.0, or v0.1.0-rc.1", r.version)
	}
	work, err := os.MkdirTemp("", "carton-oci-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if r.source, err = clone(ctx, r.repository, filepath.Join(work, "source"), r.version); err != nil {
		return err
	}
	notes, err := r.notes()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.pages, err = r.writePages(ctx, work); err != nil {
		return err
	}
	var images []image
	for _, p := range r.platforms {
		binary, err := r.build(ctx, p, work)
		if err != nil {
			return err
		}
		if err := r.describe(p, binary); err != nil {
			return err
		}
		if err := r.archive(p, binary); err != nil {
			return err
		}
		if p.os == "linux" {
			images = append(images, image{arch: p.arch, binary: binary})
		}
	}
	digest, err := r.writeImages(ctx, images)
	if err != nil {
		return err
	}
	if err := r.writeExamples(digest); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(notes), 0o644); err != nil {
		return err
	}
	return r.writeChecksums()
}
