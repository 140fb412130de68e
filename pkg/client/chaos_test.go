package client

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
)

// chaosTrials is how many transfers fail at random in a run of all tests;
// CARTON_OCI_TRIALS says otherwise. The first seed is CARTON_OCI_SEED, or 1: the
// trial of a seed is the same every time, but for which request comes first.
const chaosTrials = 40

// number reads an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: got %q, want 1 or more", name, text)
	}
	return n
}

// chaosMappings are the forms in which the model travels.
var chaosMappings = []convert.Options{
	{}, {Layers: convert.FormTar}, {Compress: convert.CompressGzip}, {Layers: convert.FormTar, Compress: convert.CompressZstd},
}

// Faults at random requests and bytes of pushes and pulls: each ends with the
// bytes that it would have ended with, or with an error and nothing under the
// final name; and the same call comes to its end once nothing fails any more.
func TestTransfersWithFaultsAtRandom(t *testing.T) {
	first, trials := number(t, "CARTON_OCI_SEED", 1), number(t, "CARTON_OCI_TRIALS", testenv.Few(chaosTrials, chaosTrials/4))
	whole := filepath.Join(t.TempDir(), "m.carton")
	if err := carton.Assemble(t.Context(), whole, sizeable(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	complete, clean, faults := 0, 0, 0
	for seed := first; seed < first+trials; seed++ {
		c := &chaos{rng: rand.New(rand.NewPCG(uint64(seed), 0)), want: want, source: whole}
		t.Run(fmt.Sprintf("seed %d", seed), c.trial)
		complete, clean, faults = complete+c.complete, clean+c.clean, faults+c.faults
	}
	testenv.Checked(t, trials, "%d transfers with %d faults, %d of them complete and byte-identical, %d ended by an error with nothing under the final name, and complete when repeated",
		trials, faults, complete, clean)
	if complete == 0 {
		t.Error("no transfer came to its end: the faults are too many to check anything")
	}
}

// chaos is one trial.
type chaos struct {
	rng    *rand.Rand
	want   []byte // the carton's bytes
	source string // and where they are

	complete, clean, faults int
}

func (c *chaos) trial(t *testing.T) {
	rng := c.rng
	quirks := registrytest.Quirks{
		CDN: rng.IntN(4) == 0, NoRanges: rng.IntN(6) == 0, RelativeLocation: rng.IntN(4) == 0,
		NewLocation: rng.IntN(4) == 0, NoDigestHeader: rng.IntN(4) == 0,
	}
	conf := registrytest.Config{Quirks: quirks}
	if rng.IntN(2) == 0 {
		conf.Auth = registrytest.Auth{Users: map[string]string{"ann": "secret"}, Bearer: true, TokenUses: rng.IntN(3) * 20}
	}
	reg := registrytest.New(t, conf)
	mapping := chaosMappings[rng.IntN(len(chaosMappings))]
	if rng.IntN(2) == 0 {
		c.push(t, reg, mapping)
	} else {
		c.pull(t, reg, mapping)
	}
}

// broken breaks some requests of a registry at random bytes.
func (c *chaos) broken(reg *registrytest.Registry, methods []string) {
	rng := c.rng
	for range 1 + rng.IntN(6) {
		at := rng.Int64N(3 * mib)
		if rng.IntN(3) == 0 {
			at = rng.Int64N(2000)
		}
		statuses := []int{400, 408, 416, 429, 500, 502, 503, 504}
		effects := []registrytest.Effect{
			registrytest.CutIn(at), registrytest.CutOut(at), registrytest.LoseAnswer, reg.StallIn(at), reg.StallOut(at),
			registrytest.Answer(statuses[rng.IntN(len(statuses))], "no"), registrytest.Answer(200, "<html>"),
		}
		paths := []string{"/blobs/", "/blobs/", "/blobs/uploads/", "/manifests/", "/cdn/", "/token"}
		f := registrytest.Fault{
			Methods: methods[rng.IntN(len(methods))], Path: paths[rng.IntN(len(paths))],
			After: rng.IntN(12), Times: 1 + rng.IntN(4), Effect: effects[rng.IntN(len(effects))],
		}
		if rng.IntN(8) == 0 {
			f.Times = -1
		}
		reg.Break(f)
		c.faults++
	}
}

func (c *chaos) pull(t *testing.T, reg *registrytest.Registry, mapping convert.Options) {
	ref, _ := pushLarge(t, reg, mapping)
	c.broken(reg, []string{"GET", "GET", "HEAD", ""})
	dir := t.TempDir()
	opts := PullOptions{Output: filepath.Join(dir, "m.carton")}
	_, err := fresh(impatient()).Pull(t.Context(), ref, opts)
	if err != nil {
		c.clean++
		if _, serr := os.Lstat(opts.Output); !errors.Is(serr, fs.ErrNotExist) {
			t.Errorf("after %v there is something under the final name: %v", err, serr)
		}
	} else {
		c.complete++
		c.compare(t, opts.Output)
	}
	reg.Mend()
	if _, err := fresh(impatient()).Pull(t.Context(), ref, opts); err != nil {
		t.Errorf("the second pull: %v", err)
	}
	c.compare(t, opts.Output)
	wantFolder(t, dir, "m.carton")
}

func (c *chaos) push(t *testing.T, reg *registrytest.Registry, mapping convert.Options) {
	ref := reg.Host + "/org/m:1"
	opts, o := PushOptions{Mapping: mapping}, impatient()
	o.Registry.StateDir = t.TempDir()
	c.broken(reg, []string{"PUT", "PATCH", "POST", "GET", "HEAD", ""})
	_, err := fresh(o).Push(t.Context(), c.source, ref, opts)
	reg.Mend()
	if err != nil {
		c.clean++
		// An answer that got lost is the one reason why it may be there.
		if _, _, ok := reg.Manifest("org/m", "1"); ok && !strings.Contains(err.Error(), "manifest") {
			t.Errorf("after %v the tag is there", err)
		}
	} else {
		c.complete++
		c.pulled(t, ref)
	}
	if _, err := fresh(o).Push(t.Context(), c.source, ref, opts); err != nil {
		t.Errorf("the second push: %v", err)
	}
	c.pulled(t, ref)
}

// pulled pulls what was pushed.
func (c *chaos) pulled(t *testing.T, ref string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "back.carton")
	if _, err := fresh(impatient()).Pull(t.Context(), ref, PullOptions{Output: name}); err != nil {
		t.Errorf("what was pushed can't be pulled: %v", err)
		return
	}
	c.compare(t, name)
}

// A partial that is longer than what it will be, or whose bytes are others, is
// gone on with all the same.
func TestPartialsThatAreTooLongOrWrong(t *testing.T) {
	for name, spoil := range map[string]func(f *os.File) error{
		"too long": func(f *os.File) error { _, err := f.WriteAt(noise(8, mib), 2*largeBytes); return err },
		"wrong":    func(f *os.File) error { _, err := f.WriteAt(noise(8, largeBytes), 0); return err },
		"empty":    func(f *os.File) error { return f.Truncate(0) },
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, registrytest.Config{})
			ref, want := pushLarge(t, r, convert.Options{})
			dir := t.TempDir()
			opts := PullOptions{Output: filepath.Join(dir, "m.carton")}
			breakOff(t, ref, opts, 5*mib, 4)
			f, err := os.OpenFile(opts.Output+".partial", os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(spoil(f), f.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := fresh(impatient()).Pull(t.Context(), ref, opts); err != nil {
				t.Fatal(err)
			}
			samePull(t, opts.Output, want)
			wantFolder(t, dir, "m.carton")
		})
	}
}

func (c *chaos) compare(t *testing.T, name string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, c.want) {
		t.Errorf("got %d bytes, %v, want the %d of the carton", len(got), err, len(c.want))
	}
}
