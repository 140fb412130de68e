package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/internal/stall"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// stallKind is one kind of request, and what asks it.
type stallKind struct {
	methods, path string
	conf          registrytest.Config
	opts          Options
	ask           func(context.Context, *registrytest.Registry, *Repository) error
	// body says that the answer of success is read; without, its end is awaited by
	// nobody.
	body bool
	// recovers: what asked may do without an answer; shrugs: without a good one.
	recovers, shrugs bool
}

const stallBlob = 6 << 20 // more than the buffers of a connection on this machine

func stallKinds(t *testing.T) map[string]stallKind {
	tokens := registrytest.Config{Auth: registrytest.Auth{Users: twoUsers, Bearer: true, Refresh: map[string]string{"identity": "u"}}}
	identity := func(context.Context, string) (auth.Credential, error) {
		return auth.Credential{RefreshToken: "identity"}, nil
	}
	blob := random(1, stallBlob)
	desc := describeBytes(blob)
	image, content := imageManifest(t, describeBytes(blob))
	subject := manifestWithSubject(t, image)
	fetch := func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
		_, err := r.FetchManifest(ctx, image)
		return err
	}
	resolve := func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
		_, err := r.Resolve(ctx, "1")
		return err
	}
	open := func(off, n int64) func(context.Context, *registrytest.Registry, *Repository) error {
		return func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
			rc, err := r.OpenRange(ctx, desc, off, n)
			if err != nil {
				return err
			}
			defer rc.Close()
			_, err = io.Copy(io.Discard, rc)
			return err
		}
	}
	other := random(2, stallBlob)
	push := func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
		return r.Push(ctx, layer(describeBytes(other), opener(other)), layout.Watch{})
	}
	after := func(methods string, ask func(context.Context, *registrytest.Registry, *Repository) error) func(context.Context, *registrytest.Registry, *Repository) error {
		return func(ctx context.Context, reg *registrytest.Registry, r *Repository) error {
			reg.Break(registrytest.Fault{Methods: methods, Path: uploads, Times: -1, Effect: registrytest.CutIn(3 << 20)})
			return ask(ctx, reg, r)
		}
	}
	return map[string]stallKind{
		"front door": {methods: "GET", path: "/v2/", ask: func(ctx context.Context, reg *registrytest.Registry, r *Repository) error {
			r.host.scheme = "http" // known, so that this is the first request
			return r.client.tryCredential(ctx, reg.Host, auth.Credential{Username: "u", Password: "p"})
		}},
		"token GET":     {methods: "GET", path: "/token", conf: tokens, opts: Options{Credential: static("u", "p")}, ask: fetch, body: true},
		"token POST":    {methods: "POST", path: "/token", conf: tokens, opts: Options{Credential: identity}, ask: fetch, body: true},
		"manifest HEAD": {methods: "HEAD", path: manifests, ask: resolve},
		"manifest GET":  {methods: "GET", path: manifests, ask: fetch, body: true},
		"manifest PUT": {methods: "PUT", path: manifests, ask: func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
			return r.PutManifest(ctx, image, content, layout.PutOptions{Tags: []string{"2"}})
		}},
		"blob HEAD": {methods: "HEAD", path: blobs, ask: func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
			_, err := r.Stat(ctx, desc.Digest)
			return err
		}},
		"blob GET":        {methods: "GET", path: blobs, ask: open(0, -1), body: true},
		"blob range":      {methods: "GET", path: blobs, ask: open(1000, 100_000), body: true},
		"redirect's host": {methods: "GET", path: "/cdn/", conf: registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}, ask: open(0, -1), body: true},
		"upload POST":     {methods: "POST", path: uploads, ask: push},
		"upload PUT":      {methods: "PUT", path: uploads, ask: push, recovers: true},
		"upload PATCH":    {methods: "PATCH", path: uploads, opts: Options{ChunkSize: 5 << 20}, ask: push, recovers: true},
		"upload status":   {methods: "GET", path: uploads, ask: after("PUT", push), recovers: true},
		"upload DELETE":   {methods: "DELETE", path: uploads, ask: after("PUT", push), recovers: true},
		"mount": {methods: "POST", path: uploads, ask: func(ctx context.Context, reg *registrytest.Registry, r *Repository) error {
			_, err := r.Mount(ctx, desc, layout.Origin{Registry: reg.Host, Repository: "org/other"})
			return err
		}, shrugs: true},
		"referrers": {methods: "GET", path: manifests + "sha256-", ask: func(ctx context.Context, _ *registrytest.Registry, r *Repository) error {
			return r.PutManifest(ctx, describeManifest(subject), subject, layout.PutOptions{})
		}, body: true},
	}
}

func manifestWithSubject(t *testing.T, subject ocispec.Descriptor) []byte {
	t.Helper()
	b, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: describeBytes([]byte("{}")), Layers: []ocispec.Descriptor{}, Subject: &subject,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func describeManifest(b []byte) ocispec.Descriptor {
	desc := describeBytes(b)
	desc.MediaType = ocispec.MediaTypeImageManifest
	return desc
}

// TestEveryWaitEnds: a registry that stops, or sends and takes a byte now and then, at
// any place of any kind of answer to any kind of request: what asked ends, and its
// error names the host and what was waited for.
func TestEveryWaitEnds(t *testing.T) {
	refuses := registrytest.Answer(http.StatusInternalServerError, strings.Repeat(" ", 5000))
	tooLarge := registrytest.Answer(http.StatusRequestEntityTooLarge, strings.Repeat(" ", 5000))
	for name, kind := range stallKinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for place, where := range registrytest.Places {
				for how, every := range map[string]time.Duration{"silence": 0, "drip": 50 * time.Millisecond} {
					for answer, effect := range map[string]registrytest.Effect{"its answer": nil, "500": refuses, "413": tooLarge} {
						if effect != nil && place < registrytest.BeforeBody {
							continue // nobody sees the difference
						}
						wg.Go(func() {
							t.Run(where+", "+how+", "+answer, func(t *testing.T) { kind.check(t, place, every, effect) })
						})
					}
				}
			}
			wg.Wait()
		})
	}
}

func (k stallKind) check(t *testing.T, at registrytest.Place, every time.Duration, effect registrytest.Effect) {
	reg := registrytest.New(t, k.conf)
	blob := random(1, stallBlob)
	reg.AddBlob("org/m", blob)
	reg.AddBlob("org/m", []byte("{}"))
	reg.AddBlob("org/other", blob)
	image, content := imageManifest(t, describeBytes(blob))
	reg.AddManifest("org/m", image.MediaType, content, "1")
	reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, []byte(`{"schemaVersion":2,"mediaType":"`+ocispec.MediaTypeImageIndex+`","manifests":[]}`),
		strings.Replace(image.Digest.String(), ":", "-", 1))
	opts := k.opts
	opts.PlainHTTP = true
	opts.Policy = Policy{Attempts: 2, MinBackoff: time.Microsecond, MaxBackoff: time.Microsecond, Stall: 100 * time.Millisecond}
	repo := dial(t, reg, "org/m", opts)
	reg.Break(registrytest.Fault{Methods: k.methods, Path: k.path, Times: -1, Effect: reg.Stall(at, every, effect)})
	done := make(chan error, 1)
	go func() { done <- k.ask(t.Context(), reg, repo) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for ever")
	}
	var stalled *stall.Error
	switch {
	case k.recovers && err == nil:
	case errors.As(err, &stalled):
		if stalled.Host == "" || !strings.Contains(err.Error(), stalled.Host+" has stalled: ") {
			t.Errorf("got %v, want the host and what was waited for", err)
		}
	case k.recovers && at <= registrytest.InHeader:
		t.Logf("%v", err)
	case at <= registrytest.InHeader, effect == nil && k.body:
		t.Errorf("got %v, want %v", err, stall.ErrStalled)
	case effect != nil && err == nil && !k.shrugs && !strings.Contains(k.methods, http.MethodHead):
		t.Errorf("got no error of an answer of 500 or 413")
	}
}
