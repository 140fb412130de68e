package layout_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"
)

// spy is a store in memory that tells what it is asked for, in order, and can
// be made to answer otherwise.
type spy struct {
	layout.Store
	mu    sync.Mutex
	calls []string
	names map[digest.Digest]string

	mount func(from layout.Origin) (bool, error)
	has   func(desc ocispec.Descriptor) (bool, error)
	push  func(desc ocispec.Descriptor) error
}

func newSpy(a *layout.Artifact) *spy {
	s := &spy{Store: layout.FromTarget(memory.New()), names: map[digest.Digest]string{a.Config.Digest: "config"}}
	for _, l := range slices.Backward(a.Layers) { // the first name of a digest counts
		s.names[l.Digest] = l.Name
	}
	return s
}

func (s *spy) called(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *spy) Has(ctx context.Context, desc ocispec.Descriptor, moved func(off int64)) (bool, error) {
	s.called("has %s", s.names[desc.Digest])
	if s.has != nil {
		return s.has(desc)
	}
	return s.Store.Has(ctx, desc, moved)
}

func (s *spy) Mount(_ context.Context, desc ocispec.Descriptor, from layout.Origin) (bool, error) {
	s.called("mount %s from %s", s.names[desc.Digest], from.Repository)
	if s.mount != nil {
		return s.mount(from)
	}
	return false, nil
}

func (s *spy) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	s.called("push %s", s.names[l.Digest])
	if s.push != nil {
		if err := s.push(l.Descriptor); err != nil {
			return err
		}
	}
	return s.Store.Push(ctx, l, w)
}

func (s *spy) PutManifest(ctx context.Context, desc ocispec.Descriptor, b []byte, opts layout.PutOptions) error {
	s.called("put %s", strings.Join(opts.Tags, ","))
	return s.Store.PutManifest(ctx, desc, b, opts)
}

// sample is an artifact with a content that occurs twice.
func sample(t testing.TB) *layout.Artifact {
	t.Helper()
	spec := layout.ArtifactSpec{Config: configLayer()}
	for i, c := range []string{"one", "two", "one", "three"} {
		l := blobLayer(fmt.Sprintf("model/%d", i), []byte(c))
		l.Origins = []layout.Origin{{Registry: "r.example", Repository: fmt.Sprintf("from/%d", i)}}
		spec.Layers = append(spec.Layers, l)
	}
	return artifact(t, spec)
}

func TestPushInOrder(t *testing.T) {
	a := sample(t)
	s := newSpy(a)
	one := a.Layers[0]
	if err := s.Store.Push(t.Context(), a.Layers[1], layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	s.mount = func(from layout.Origin) (bool, error) { return from.Repository == "from/2", nil }
	got, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1", "v2"}, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"has config", "push config",
		"has model/0", "mount model/0 from from/0", "mount model/0 from from/2",
		"has model/1",
		"has model/3", "mount model/3 from from/3", "push model/3",
		"put v1,v2",
	}
	if diff := cmp.Diff(want, s.calls); diff != "" {
		t.Error(diff)
	}
	status := func(l layout.Layer, st layout.Status) layout.LayerStatus {
		return layout.LayerStatus{Name: l.Name, MediaType: l.MediaType, Digest: l.Digest, Size: l.Size, Status: st}
	}
	wantResult := &layout.PushResult{
		Descriptor: a.Descriptor,
		Config:     status(a.Config, layout.Uploaded),
		Layers: []layout.LayerStatus{
			status(one, layout.Mounted), status(a.Layers[1], layout.Exists),
			status(a.Layers[2], layout.Mounted), status(a.Layers[3], layout.Uploaded),
		},
		BytesUploaded: 2 + 5,
	}
	if diff := cmp.Diff(wantResult, got); diff != "" {
		t.Error(diff)
	}
}

func TestPushLeavesTheArtifactsOriginsAlone(t *testing.T) {
	a := sample(t)
	a.Layers[0].Origins = append(make([]layout.Origin, 0, 10), a.Layers[0].Origins...)
	spare := a.Layers[0].Origins[:2]
	if _, err := layout.Push(t.Context(), newSpy(a), a, layout.PushOptions{}); err != nil {
		t.Fatal(err)
	}
	if spare[1] != (layout.Origin{}) || len(a.Layers[0].Origins) != 1 {
		t.Errorf("got %v", spare)
	}
}

// passing is an error that says that another attempt may do better.
type passing struct{ error }

func (passing) Temporary() bool { return true }

func TestPushTriesAgainWhereThatMayHelp(t *testing.T) {
	cases := []struct {
		name     string
		failures int
		err      error
		pushes   int
		ok       bool
	}{
		{"once", 1, passing{errors.New("wrong bytes from a link")}, 2, true},
		{"twice", 2, fmt.Errorf("read: %w", passing{errors.New("wrong bytes from a link")}), 3, true},
		{"for ever", 100, passing{errors.New("wrong bytes from a link")}, 3, false},
		{"for good", 100, errors.New("denied"), 1, false},
	}
	for _, c := range cases {
		a := artifact(t, layout.ArtifactSpec{Config: configLayer()})
		s := newSpy(a)
		failures := 0
		s.push = func(ocispec.Descriptor) error {
			if failures++; failures <= c.failures {
				return c.err
			}
			return nil
		}
		var retries []string
		_, err := layout.Push(t.Context(), s, a, layout.PushOptions{Progress: func(e progress.Event) {
			if e.State == progress.Retrying {
				retries = append(retries, e.Err.Error())
			}
		}})
		if (err == nil) != c.ok || (!c.ok && !errors.Is(err, c.err)) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if failures != c.pushes || len(retries) != c.pushes-1 {
			t.Errorf("%s: got %d attempts and %q, want %d", c.name, failures, retries, c.pushes)
		}
	}
}

func TestPushDoesNotTryAgainWhenItIsCancelled(t *testing.T) {
	a := artifact(t, layout.ArtifactSpec{Config: configLayer()})
	s := newSpy(a)
	ctx, cancel := context.WithCancel(t.Context())
	pushes := 0
	s.push = func(ocispec.Descriptor) error {
		pushes++
		cancel()
		return passing{context.Canceled}
	}
	if _, err := layout.Push(ctx, s, a, layout.PushOptions{}); !errors.Is(err, context.Canceled) || pushes != 1 {
		t.Errorf("got %v after %d attempts, want context.Canceled after 1", err, pushes)
	}
}

func TestPushStopsAtTheFirstErrorAndPutsNoManifest(t *testing.T) {
	var spec layout.ArtifactSpec
	spec.Config = configLayer()
	for i := range 50 {
		spec.Layers = append(spec.Layers, blobLayer(fmt.Sprintf("model/%02d", i), []byte(fmt.Sprint(i))))
	}
	a := artifact(t, spec)
	s := newSpy(a)
	full := errors.New("the registry is full")
	s.push = func(desc ocispec.Descriptor) error {
		if desc.Digest == a.Layers[9].Digest {
			return full
		}
		return nil
	}
	_, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}, Concurrency: 2})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "model/09") {
		t.Errorf("got %v, want %v with the layer's name", err, full)
	}
	if n := len(s.calls); n > 2*15 {
		t.Errorf("made %d calls, want that the others stop", n)
	}
	for _, c := range s.calls {
		if strings.HasPrefix(c, "put") {
			t.Error("the image manifest was put")
		}
	}
}

func TestPushFaults(t *testing.T) {
	broken := errors.New("no route to host")
	nothing := func(context.Context, int64) (io.ReadCloser, error) { return nil, broken }
	cases := []struct {
		name string
		edit func(*layout.Artifact, *spy)
		want error
	}{
		{"asking fails", func(_ *layout.Artifact, s *spy) {
			s.has = func(ocispec.Descriptor) (bool, error) { return false, broken }
		}, broken},
		{"mount fails", func(_ *layout.Artifact, s *spy) { s.mount = func(layout.Origin) (bool, error) { return false, broken } }, broken},
		{"source fails", func(a *layout.Artifact, _ *spy) { a.Layers[3].Open = nothing }, broken},
		{"nobody has it", func(a *layout.Artifact, _ *spy) { a.Layers[3].Open = nil }, layout.ErrNotFound},
		{"manifest is not what it says", func(a *layout.Artifact, _ *spy) { a.Manifest = []byte("{}") }, layout.ErrDigest},
	}
	for _, c := range cases {
		a := sample(t)
		s := newSpy(a)
		c.edit(a, s)
		if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if _, err := s.Resolve(t.Context(), "v1"); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%s: the tag is set: %v", c.name, err)
		}
	}
}

// A store can't tell who is to blame for the wrong bytes; the source can.
func TestPushAsksTheSourceWhatIsWrong(t *testing.T) {
	bad, refused := errors.New("byte 3 is wrong"), errors.New("no route to host")
	for name, c := range map[string]struct{ pushed, found, want error }{
		"the source is wrong":     {layout.ErrDigest, bad, bad},
		"the source is right":     {layout.ErrDigest, nil, layout.ErrDigest},
		"it is not about digests": {refused, bad, refused},
	} {
		a := sample(t)
		s, asked := newSpy(a), 0
		a.Layers[3].Check = func(context.Context) error { asked++; return c.found }
		s.push = func(desc ocispec.Descriptor) error {
			if desc.Digest == a.Layers[3].Digest {
				return c.pushed
			}
			return nil
		}
		if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if want := map[bool]int{true: 1}[errors.Is(c.pushed, layout.ErrDigest)]; asked != want {
			t.Errorf("%s: the source was asked %d times, want %d", name, asked, want)
		}
	}
}

func TestNoClobber(t *testing.T) {
	mine, theirs := sample(t), storetest.Artifact(t, 7)
	s := newSpy(mine)
	push := func(a *layout.Artifact, tags ...string) error {
		_, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: tags, NoClobber: true})
		return err
	}
	if err := errors.Join(push(theirs, "v1"), push(theirs, "v1"), push(theirs, "v1", "v2")); err != nil {
		t.Fatalf("the same artifact again: %v", err)
	}
	s.calls = nil
	if err := push(mine, "v3", "v1"); !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("got %v, want ErrTagExists", err)
	}
	if len(s.calls) != 0 {
		t.Errorf("was asked for %q, want nothing", s.calls)
	}
	// The tag appears while blobs are on their way.
	s.push = func(ocispec.Descriptor) error {
		s.push = nil
		return s.Store.PutManifest(t.Context(), theirs.Descriptor, theirs.Manifest, layout.PutOptions{Tags: []string{"v4"}})
	}
	_, err := layout.Push(t.Context(), s, mine, layout.PushOptions{Tags: []string{"v4"}, NoClobber: true, Concurrency: 1})
	if !errors.Is(err, layout.ErrTagExists) {
		t.Errorf("a tag that appears meanwhile: got %v, want ErrTagExists", err)
	}
	if desc, err := s.Resolve(t.Context(), "v4"); err != nil || desc.Digest != theirs.Digest {
		t.Errorf("the tag has moved: %v, %v", desc, err)
	}
}

func TestPushAtMostSoManyAtOnce(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		var spec layout.ArtifactSpec
		spec.Config = configLayer()
		for i := range 30 {
			spec.Layers = append(spec.Layers, blobLayer("", []byte(fmt.Sprint(i))))
		}
		a := artifact(t, spec)
		s := newSpy(a)
		var now, most atomic.Int64
		s.push = func(ocispec.Descriptor) error {
			at := now.Add(1)
			for m := most.Load(); at > m && !most.CompareAndSwap(m, at); m = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			now.Add(-1)
			return nil
		}
		if _, err := layout.Push(t.Context(), s, a, layout.PushOptions{Concurrency: n}); err != nil {
			t.Fatal(err)
		}
		want := int64(n)
		if n == 0 {
			want = 8
		}
		if most.Load() > want || (want > 1 && most.Load() < 2) {
			t.Errorf("Concurrency %d: got %d at once, want at most %d", n, most.Load(), want)
		}
	}
}

func TestPushReportsProgress(t *testing.T) {
	a := sample(t)
	s := newSpy(a)
	if err := s.Store.Push(t.Context(), a.Layers[1], layout.Watch{}); err != nil {
		t.Fatal(err)
	}
	s.mount = func(from layout.Origin) (bool, error) { return from.Repository == "from/0", nil }
	var got []progress.Event
	_, err := layout.Push(t.Context(), s, a, layout.PushOptions{Concurrency: 1, Progress: func(e progress.Event) { got = append(got, e) }})
	if err != nil {
		t.Fatal(err)
	}
	want := []progress.Event{
		{Name: "config", State: progress.Started, Total: 2},
		{Name: "config", State: progress.Moving, Done: 2, Total: 2},
		{Name: "config", State: progress.Finished, Done: 2, Total: 2},
		{Name: "model/0", State: progress.Started, Total: 3},
		{Name: "model/0", State: progress.Mounted, Done: 3, Total: 3},
		{Name: "model/1", State: progress.Started, Total: 3},
		{Name: "model/1", State: progress.Exists, Done: 3, Total: 3},
		{Name: "model/3", State: progress.Started, Total: 5},
		{Name: "model/3", State: progress.Moving, Done: 5, Total: 5},
		{Name: "model/3", State: progress.Finished, Done: 5, Total: 5},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Error(diff)
	}
}

func ExamplePush() {
	blob := []byte("weights")
	config := []byte("{}")
	a, err := layout.NewArtifact(layout.ArtifactSpec{
		ArtifactType: "application/vnd.example.model.v1",
		Config:       layout.Layer{Descriptor: descOf("application/vnd.example.config.v1+json", config), Open: opens(config)},
		Layers:       []layout.Layer{{Descriptor: descOf("application/octet-stream", blob), Name: "model.bin", Open: opens(blob)}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := layout.FromTarget(memory.New()) // or a layout.Dir, or a registry.Repository
	result, err := layout.Push(context.Background(), store, a, layout.PushOptions{Tags: []string{"v1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Layers[0].Name, result.Layers[0].Status, result.BytesUploaded)
	// Output: model.bin uploaded 9
}

// teller is a store that tells more, and objects where it is told to.
type teller struct {
	*spy
	upload func(w layout.Watch) error
	check  error
}

func (s *teller) Push(ctx context.Context, l layout.Layer, w layout.Watch) error {
	if s.names[l.Digest] != "config" {
		if err := s.upload(w); err != nil {
			return err
		}
	}
	return s.spy.Push(ctx, l, layout.Watch{Moved: w.Moved})
}

func (s *teller) CheckArtifact(context.Context, *layout.Artifact) error {
	s.called("check")
	return s.check
}

// TestPushTellsWhatWasResumed: of a store that tells, bytes are counted as they
// go out, and apart from those of an earlier run.
func TestPushTellsWhatWasResumed(t *testing.T) {
	for _, tt := range []struct {
		name           string
		upload         func(w layout.Watch) error
		sent, resumed  int64
		resumedReports int
	}{
		{"all of it", func(w layout.Watch) error { w.Sent(3); w.Sent(4); return nil }, 7, 0, 0},
		{"the rest", func(w layout.Watch) error { w.Resumed(5); w.Sent(2); return nil }, 2, 5, 1},
		{"twice after all", func(w layout.Watch) error { w.Resumed(5); w.Sent(2); w.Resumed(0); w.Sent(7); return nil }, 9, 0, 1},
	} {
		a := artifact(t, layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{blobLayer("model/0", []byte("weights"))}})
		s := &teller{spy: newSpy(a), upload: tt.upload}
		var reports []progress.Event
		got, err := layout.Push(t.Context(), s, a, layout.PushOptions{Progress: func(e progress.Event) {
			if e.State == progress.Resumed {
				reports = append(reports, e)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got.BytesUploaded != tt.sent || got.BytesResumed != tt.resumed {
			t.Errorf("%s: got %d sent and %d resumed, want %d and %d", tt.name, got.BytesUploaded, got.BytesResumed, tt.sent, tt.resumed)
		}
		if len(reports) != tt.resumedReports || len(reports) > 0 && (reports[0].Done != 5 || reports[0].Total != 7) {
			t.Errorf("%s: got %v", tt.name, reports)
		}
	}
}

// TestPushCountsFailedAttempts: what went out went out.
func TestPushCountsFailedAttempts(t *testing.T) {
	a := artifact(t, layout.ArtifactSpec{Config: configLayer(), Layers: []layout.Layer{blobLayer("model/0", []byte("weights"))}})
	attempts := 0
	s := &teller{spy: newSpy(a), upload: func(w layout.Watch) error {
		w.Sent(3)
		if attempts++; attempts < 3 {
			return passing{errors.New("wrong bytes from a link")}
		}
		return nil
	}}
	got, err := layout.Push(t.Context(), s, a, layout.PushOptions{})
	if err != nil || got.BytesUploaded != 9 {
		t.Errorf("got %+v, %v, want 9 bytes sent", got, err)
	}
}

// TestPushIsRefusedFirst: a store's objection counts before it is asked anything.
func TestPushIsRefusedFirst(t *testing.T) {
	a := sample(t)
	s := &teller{spy: newSpy(a), check: layout.ErrLimit}
	_, err := layout.Push(t.Context(), s, a, layout.PushOptions{Tags: []string{"v1"}, NoClobber: true})
	if !errors.Is(err, layout.ErrLimit) || len(s.calls) != 1 {
		t.Errorf("got %v after %q", err, s.calls)
	}
	if err := s.spy.CheckArtifact(t.Context(), a); err != nil {
		t.Errorf("a store without limits: %v", err)
	}
}
