package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
)

// The promise: what is read from the local disk are regular files. Nothing else
// is waited for, read to an end that it may not have, or sent anywhere.

// notFiles are what lies in the place of a file.
var notFiles = map[string]func(name string) error{
	"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
	"device": func(name string) error { return os.Symlink("/dev/zero", name) },
	"socket": func(name string) error {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		// A socket's path is short: it is made here and put there.
		dir, err := os.MkdirTemp("", "s")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		at := filepath.Join(dir, "s")
		return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: at}), os.Rename(at, name))
	},
	"folder": func(name string) error { return os.Mkdir(name, 0o700) },
}

// mustFail runs a command that must end by itself, with an error.
func (u *user) mustFail(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, cartonOCI, args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdin = u.dir, u.env, &stderr, strings.NewReader("password\n")
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("carton-oci %s: still runs", strings.Join(args, " "))
	}
	if err == nil {
		t.Errorf("carton-oci %s: got exit code 0, want an error", strings.Join(args, " "))
	}
	return result{args: args, stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// filePositions are places of the command line where a file is read: the file that is
// replaced, and commands that read it.
var filePositions = map[string]struct {
	file     string
	commands []string
}{
	"a carton": {"m.carton", []string{
		"push m.carton HOST/org/m:2", "push m.carton oci:other:1", "pull ./m.carton -o x.carton", "ls ./m.carton", "cat ./m.carton carton.toml",
		"inspect ./m.carton", "verify m.carton", "tensors ./m.carton", "diff ./m.carton unpacked", "image oci:m.carton:1",
		"push m.carton HOST/org/m:2 --runner noop --framework-version *", "pack m.carton -o x.carton --runner noop --framework-version *",
	}},
	"MANIFEST of a folder": {"unpacked/MANIFEST", []string{"push unpacked HOST/org/m:2", "verify unpacked", "ls ./unpacked", "pull ./unpacked -o x.carton"}},
	"a member of a folder": {"unpacked/model/a.json", []string{"push unpacked HOST/org/m:2", "verify unpacked", "cat ./unpacked model/a.json"}},
	"carton.toml of a folder": {"loose/carton.toml", []string{
		"push loose HOST/org/m:2", "pack loose -o x.carton",
	}},
	"oci-layout": {"layout/oci-layout", []string{
		"pull oci:layout:1 -o x.carton", "push m.carton oci:layout:2", "ls oci:layout:1", "verify oci:layout:1", "resolve oci:layout:1",
		"image oci:layout:1", "push oci:layout:1 HOST/org/m:2",
	}},
	"index.json": {"layout/index.json", []string{
		"pull oci:layout:1 -o x.carton", "push m.carton oci:layout:2", "inspect oci:layout:1", "resolve oci:layout:1", "push oci:layout:1 HOST/org/m:2",
	}},
	"the blob of a member": {"layout/BLOB", []string{
		"pull oci:layout:1 -o x.carton", "pull oci:layout:1 --unpack x", "push oci:layout:1 HOST/org/m:2", "verify oci:layout:1", "push m.carton oci:layout:2",
		"image oci:layout:1",
	}},
	"a layout":         {"layout", []string{"pull oci:layout:1 -o x.carton", "push m.carton oci:layout:2", "push oci:layout:1 HOST/org/m:2"}},
	"a layout's blobs": {"layout/blobs", []string{"pull oci:layout:1 -o x.carton", "push m.carton oci:layout:2", "push oci:layout:1 HOST/org/m:2"}},
	"--carton-toml":    {"extra", []string{"pack weights -o x.carton --carton-toml extra", "push weights HOST/org/m:2 --carton-toml extra"}},
	"--misc":           {"extra", []string{"pack weights -o x.carton --runner noop --framework-version * --misc extra"}},
	"--ca-file":        {"extra", []string{"ls HOST/org/m:1 --ca-file extra", "login HOST -u a --password-stdin --ca-file extra"}},
	"--cert-file":      {"extra", []string{"ls HOST/org/m:1 --cert-file extra"}},
	"--key-file":       {"extra", []string{"ls HOST/org/m:1 --cert-file m.carton --key-file extra"}},
	"--registry-config": {"extra", []string{
		"ls HOST/org/m:1 --registry-config extra", "login HOST -u a --password-stdin --registry-config extra", "logout HOST --registry-config extra",
		"push m.carton HOST/org/m:2 --registry-config extra", "resolve HOST/org/m:1 --registry-config extra",
	}},
}

func TestLocalFilesThatAreNone(t *testing.T) {
	for position, p := range filePositions {
		t.Run(position, func(t *testing.T) {
			t.Parallel()
			opts := testregistry.Options{}
			if position == "--registry-config" { // credentials are read where they are needed
				opts = testregistry.Options{Auth: testregistry.Htpasswd, Users: map[string]string{"a": "password"}}
			}
			s := testregistry.Start(t, opts)
			for kind, place := range notFiles {
				u := newUser(t)
				prepareLocal(t, u)
				name := u.path(strings.Replace(p.file, "BLOB", blobOf(t, u, "layout", "model/a.json"), 1))
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
				if kind == "folder" && (p.file == "layout" || p.file == "layout/blobs" || position == "--misc") {
					continue // that is what they are
				}
				if err := place(name); err != nil {
					t.Fatal(err)
				}
				for _, c := range p.commands {
					r := u.mustFail(t, strings.Fields(strings.ReplaceAll(c, "HOST", s.Host))...)
					if p.file == "extra" && position != "--misc" && !strings.Contains(r.stderr, "is a "+kind) {
						t.Errorf("%s: got %s, want it to say what extra is", c, r.stderr)
					}
					if len(r.stderr) > 4000 || r.code == 130 || strings.Contains(r.stderr, "goroutine ") {
						t.Errorf("%s, a %s: got exit code %d and %.500s", c, kind, r.code, r.stderr)
					}
				}
				if _, err := os.Lstat(u.path("x.carton")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a %s: there is an output: %v", kind, err)
				}
			}
		})
	}
}

// prepareLocal makes a carton in all its local forms, and loose files.
func prepareLocal(t *testing.T, u *user) {
	t.Helper()
	writeFile(t, u.path("loose/model/a.json"), `{"a": "a member"}`)
	writeFile(t, u.path("loose/model/large.bin"), random("large", 4<<20))
	writeFile(t, u.path("weights/w.bin"), "weights")
	u.must(t, "pack", "loose/model", "-o", "m.carton", "--runner", "noop", "--framework-version", "*", "-q")
	u.must(t, "pull", "./m.carton", "--unpack", "unpacked", "-q")
	u.must(t, "push", "m.carton", "oci:layout:1", "-q")
	toml := u.must(t, "cat", "./m.carton", "carton.toml")
	writeFile(t, u.path("loose/carton.toml"), toml.stdout)
}

// blobOf returns the path of a raw member's blob in a layout.
func blobOf(t *testing.T, u *user, layout, member string) string {
	t.Helper()
	digest := u.push(t, "m.carton", "oci:"+layout+":1").layer(t, member).Digest
	return "blobs/sha256/" + strings.TrimPrefix(digest, "sha256:")
}

// A layout that a stranger made does not bring what lies elsewhere to a registry:
// not a byte of it leaves.
func TestALayoutHoldsRegularFiles(t *testing.T) {
	s := testregistry.Start(t, testregistry.Options{})
	for name, plant := range map[string]func(u *user, blob string) error{
		"blob": func(u *user, blob string) error {
			return errors.Join(os.Rename(u.path(blob), u.path("outside")), os.Symlink(u.path("outside"), u.path(blob)))
		},
		"blob, inside": func(u *user, blob string) error {
			return errors.Join(os.Rename(u.path(blob), u.path("layout/other")), os.Symlink("../../other", u.path(blob)))
		},
		"blobs": func(u *user, _ string) error {
			return errors.Join(os.Rename(u.path("layout/blobs"), u.path("outside")), os.Symlink(u.path("outside"), u.path("layout/blobs")))
		},
		"blobs/sha256": func(u *user, _ string) error {
			return errors.Join(os.Rename(u.path("layout/blobs/sha256"), u.path("layout/blobs/other")), os.Symlink("other", u.path("layout/blobs/sha256")))
		},
		"index.json": func(u *user, _ string) error {
			return errors.Join(os.Rename(u.path("layout/index.json"), u.path("outside")), os.Symlink(u.path("outside"), u.path("layout/index.json")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			prepareLocal(t, u)
			if err := plant(u, "layout/"+blobOf(t, u, "layout", "model/large.bin")); err != nil {
				t.Fatal(err)
			}
			s.Traffic.Reset()
			for _, args := range [][]string{
				{"push", "oci:layout:1", s.Host + "/org/m:1"},
				{"pull", "oci:layout:1", "-o", "x.carton"},
				{"verify", "oci:layout:1"},
				{"push", "m.carton", "oci:layout:2"},
			} {
				if r := u.mustFail(t, args...); r.code != 3 || !strings.Contains(r.stderr, "is a symlink") {
					t.Errorf("%s: got exit code %d and %s", args[0], r.code, r.stderr)
				}
			}
			if in := s.Traffic.BlobBytesIn(); in > 1<<20 {
				t.Errorf("%d bytes of blobs left", in)
			}
		})
	}
}
