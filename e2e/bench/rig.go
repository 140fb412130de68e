package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// rig is everything that a case needs to run programs.
type rig struct {
	options
	dir    string // below which everything is
	remove bool   // it is ours
	bin    string // the built programs
	curl   string // "" where there is none
	skopeo string
	server *server

	members []member // of the model in carton() and files()
	floor   int64    // no peak below this can be seen
}

func newRig(ctx context.Context, o options) (*rig, error) {
	r := &rig{options: o, dir: o.work}
	if r.dir == "" {
		dir, err := os.MkdirTemp("", "carton-oci-bench")
		if err != nil {
			return nil, err
		}
		r.dir, r.remove = dir, true
	}
	r.bin = filepath.Join(r.dir, "bin")
	if err := r.build(ctx); err != nil {
		r.close()
		return nil, err
	}
	if need := 5 * r.size; freeDisk(r.dir) < need {
		r.close()
		return nil, fmt.Errorf("%s: want %d bytes free", r.dir, need)
	}
	r.curl, _ = exec.LookPath("curl")
	r.skopeo, _ = exec.LookPath("skopeo")
	var err error
	if err = os.MkdirAll(r.path("server"), 0o755); err == nil {
		r.server, err = startServer(ctx, filepath.Join(r.bin, "server"), r.path("server"))
	}
	if err == nil {
		var f figures
		f, err = measure(ctx, program{path: filepath.Join(r.bin, "oras"), args: []string{"-h"}})
		r.floor = f.Peak
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// build builds the command under test, as a user would, and what it is compared
// with.
func (r *rig) build(ctx context.Context) error {
	for _, b := range [][2]string{
		{r.root, "./cmd/carton-oci"}, {".", "./bench/oras"}, {".", "./bench/server"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", r.bin+string(filepath.Separator), b[1])
		cmd.Dir = b[0]
		if b[0] == "." {
			cmd.Dir = filepath.Join(r.root, "e2e")
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", b[1], err, out)
		}
	}
	return nil
}

func (r *rig) close() {
	if r.server != nil {
		r.server.close()
	}
	if r.remove {
		_ = os.RemoveAll(r.dir)
	}
}

// path returns a path below the rig's folder.
func (r *rig) path(elem ...string) string { return filepath.Join(append([]string{r.dir}, elem...)...) }

// empty makes a folder that holds nothing.
func (r *rig) empty(name string) (string, error) {
	dir := r.path(name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// model makes a model of so many weights below name, and its carton beside it,
// once.
func (r *rig) model(name string, weights int, size int64) ([]member, error) {
	var members []member
	for i := range weights {
		path := fmt.Sprintf("model/weights-%05d-of-%05d.safetensors", i+1, weights)
		m, err := writeWeight(r.path(name), path, size/int64(weights), uint64(i)+uint64(size))
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, r.finish(name, members)
}

// finish adds what a folder needs to be a carton, and writes it as a zip.
func (r *rig) finish(name string, members []member) error {
	all, err := writeManifest(r.path(name), members)
	if err != nil {
		return err
	}
	return writeCarton(r.path(name+".carton"), r.path(name), all)
}

// large makes the model of the first cases.
func (r *rig) large() error {
	if r.members != nil {
		return nil
	}
	members, err := r.model("large", 4, r.size)
	r.members = members
	return err
}

// contender is a program in a case: what is done before each of its runs, what
// it is, and what it leaves.
type contender struct {
	name    string
	prepare func(ctx context.Context) error
	program func(ctx context.Context) (program, error)
	outputs []string // files to flush, or folders with files
}

// ours is the name of the program that the benchmark is about.
const ours = "carton-oci"

// rounds runs every contender once in each round, in turn, and returns their
// figures by name. No run pays for the dirty pages of the one before, and none is
// always first.
func (r *rig) rounds(ctx context.Context, contenders []contender) (map[string][]figures, error) {
	all := map[string][]figures{}
	start := time.Now()
	for round := range r.pairs {
		if round >= 3 && time.Since(start) > r.patience {
			break
		}
		for i := range contenders {
			c := contenders[(round+i)%len(contenders)]
			f, err := r.once(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "  %-12s %7.2f s, %6.2f s CPU, %4d MiB, %5d MB in, %5d MB out, %5d MB written, fsync %.2f s and %.2f s\n",
				c.name, f.Wall, f.CPU, f.Peak>>20, f.In/1e6, f.Out/1e6, f.Written/1e6, f.Sync, f.After)
			all[c.name] = append(all[c.name], f)
		}
	}
	return all, nil
}

func (r *rig) once(ctx context.Context, c contender) (figures, error) {
	if c.prepare != nil {
		if err := c.prepare(ctx); err != nil {
			return figures{}, err
		}
	}
	p, err := c.program(ctx)
	if err != nil {
		return figures{}, err
	}
	syncAll()
	if err := r.server.reset(ctx); err != nil {
		return figures{}, err
	}
	f, err := measure(ctx, p)
	if err != nil {
		return f, err
	}
	if f.In, f.Out, err = r.server.wire(ctx); err != nil {
		return f, err
	}
	files, err := below(c.outputs)
	if err != nil {
		return f, err
	}
	f.After, err = flush(files)
	return f, err
}

// below returns the files in the outputs.
func below(outputs []string) ([]string, error) {
	var files []string
	for _, name := range outputs {
		err := filepath.WalkDir(name, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
