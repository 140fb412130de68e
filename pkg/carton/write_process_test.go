package carton_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/google/go-cmp/cmp"
)

// TestHoldOutput is no test but the second process of one: it begins the output
// that the environment names, and ends when its input does.
func TestHoldOutput(t *testing.T) {
	name := os.Getenv("CARTON_TEST_HOLD")
	if name == "" {
		return
	}
	src := cartontest.New(nil, nil, cartontest.WithOpen(func(_ string, _ int, r io.Reader) (io.Reader, error) {
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return r, nil
	}))
	var err error
	if filepath.Ext(name) == ".carton" {
		err = carton.Assemble(t.Context(), name, src, carton.AssembleOptions{})
	} else {
		err = carton.Extract(t.Context(), name, src, carton.ExtractOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

// holdElsewhere starts a process that is in the middle of writing the output
// name until it is killed or its input is closed.
func holdElsewhere(t *testing.T, name string) (cmd *exec.Cmd, in io.Closer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestHoldOutput$")
	cmd.Env = append(os.Environ(), "CARTON_TEST_HOLD="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		testenv.Emulated(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd, in
}

func TestOneWriterAtATime(t *testing.T) {
	src := cartontest.New(nil, nil)
	write := map[string]func(name string) error{
		"m.carton": func(name string) error {
			return carton.Assemble(t.Context(), name, src, carton.AssembleOptions{Replace: true})
		},
		"m": func(name string) error {
			return carton.Extract(t.Context(), name, src, carton.ExtractOptions{Replace: true})
		},
	}
	for base, write := range write {
		t.Run(base, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, base)
			cmd, in := holdElsewhere(t, name)
			if err := write(name); !errors.Is(err, carton.ErrBusy) {
				t.Errorf("got %v, want ErrBusy", err)
			}
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("the other process: %v", err)
			}
			sameCarton(t, name, src)
			if err := write(name); err != nil {
				t.Errorf("after it has ended: %v", err)
			}
		})
	}
}

// A process that is killed in the middle leaves what the next one takes over.
func TestKilledWriterIsNoObstacle(t *testing.T) {
	dir := t.TempDir()
	src := cartontest.New(nil, nil)
	for _, base := range []string{"m.carton", "m"} {
		name := filepath.Join(dir, base)
		cmd, _ := holdElsewhere(t, name)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if _, err := os.Stat(name + ".partial"); err != nil {
			t.Errorf("the killed process left no partial: the test tests nothing: %v", err)
		}
	}
	if err := carton.Assemble(t.Context(), filepath.Join(dir, "m.carton"), src, carton.AssembleOptions{}); err != nil {
		t.Error(err)
	}
	if err := carton.Extract(t.Context(), filepath.Join(dir, "m"), src, carton.ExtractOptions{}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"m.carton", "m/MANIFEST", "m/carton.toml"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
}
