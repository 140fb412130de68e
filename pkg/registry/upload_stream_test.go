package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestPushStream sends a blob without its digest to registries of every kind.
func TestPushStream(t *testing.T) {
	const mib = 1 << 20
	patch := func(e registrytest.Effect) *registrytest.Fault {
		return &registrytest.Fault{Methods: "PATCH", Path: uploads, After: 1, Effect: e}
	}
	for name, tt := range map[string]struct {
		quirks  registrytest.Quirks
		auth    registrytest.Auth
		host    behaviour
		chunk   int64 // in MiB, 0: the default
		size    int   // 0: 9 MiB
		fault   *registrytest.Fault
		patches string // their lengths in MiB
		read    int64  // bytes of the source, 0: size
	}{
		"in one chunk":          {patches: "9"},
		"in chunks":             {chunk: 4, patches: "4 4 1"},
		"not a single byte":     {chunk: 4, size: 8*mib + 1, patches: "4 4194303b 2b"},
		"two bytes":             {size: 2, patches: "2b"},
		"ECR":                   {quirks: registrytest.Quirks{PatchStatus: 201, FirstRange: true}, host: behaviour{rangeNeverAdvances: true}, chunk: 4, patches: "4 4 1"},
		"GHCR":                  {quirks: registrytest.Quirks{MaxPatch: 4 * mib}, host: behaviour{maxChunk: 4 * mib}, patches: "4 4 1"},
		"with a login":          {auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true}, patches: "9"},
		"a least length":        {quirks: registrytest.Quirks{MinChunk: 5 * mib}, chunk: 2, patches: "5 4"},
		"413 to large requests": {quirks: registrytest.Quirks{MaxRequest: 2 * mib}, chunk: 8, patches: "8 2 2 2 2 1", read: -1},
		// What was read is read again, from the beginning, and not sent again.
		"a chunk that breaks off": {fault: patch(registrytest.CutIn(1 * mib)), chunk: 4, patches: "4 4 4", read: -1},
		"an answer that is lost":  {fault: &registrytest.Fault{Methods: "PUT", Path: uploads, Effect: registrytest.LoseAnswer}, patches: "9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p"), ChunkSize: tt.chunk * mib})
			repo.host.behaviour = tt.host
			if tt.fault != nil {
				reg.Break(*tt.fault)
			}
			size := tt.size
			if size == 0 {
				size = 9 * mib
			}
			src := &source{b: random(9, size)}
			var sent atomic.Int64
			open := func(ctx context.Context, off int64) (io.ReadCloser, error) {
				if off != 0 {
					t.Errorf("opened at %d, where no reader can verify", off)
				}
				return src.open(ctx, off)
			}
			got, err := repo.PushStream(t.Context(), int64(size), open, layout.Watch{Sent: func(n int64) { sent.Add(n) }})
			if err != nil {
				t.Fatal(err)
			}
			want := describeBytes(src.b)
			if got != want.Digest {
				t.Errorf("got the digest %s, want %s", got, want.Digest)
			}
			if b, ok := reg.Blob("org/m", want.Digest); !ok || !bytes.Equal(b, src.b) {
				t.Error("the registry has other bytes than were pushed")
			}
			if tt.fault == nil || tt.fault.Methods == "PUT" {
				if got := lengths(reg, "PATCH"); got != tt.patches {
					t.Errorf("got chunks of %q, want %q", got, tt.patches)
				}
			}
			if read := src.read.Load(); tt.read == 0 && read != int64(size) {
				t.Errorf("read %d bytes of the source, want %d", read, size)
			}
			if sent.Load() < int64(size) {
				t.Errorf("told of %d bytes, %d went out", sent.Load(), size)
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

// TestPushStreamFails: a registry without chunks says so, and what goes wrong
// leaves nothing behind.
func TestPushStreamFails(t *testing.T) {
	broken := errors.New("broken")
	good := random(10, 1<<20)
	again := bytes.Clone(good)
	again[0]++
	opens := 0
	for name, tt := range map[string]struct {
		quirks registrytest.Quirks
		host   behaviour
		fault  *registrytest.Fault
		open   layout.Opener
		kind   error
		says   string
	}{
		"405":                   {quirks: registrytest.Quirks{NoPatch: 405}, kind: layout.ErrNoStream, says: "405"},
		"one request a session": {quirks: registrytest.Quirks{OneShot: true}, kind: layout.ErrNoStream, says: "404"},
		"Artifact Registry":     {host: behaviour{maxChunk: noChunks}, kind: layout.ErrNoStream, says: "takes no chunks"},
		"403":                   {fault: &registrytest.Fault{Methods: "PATCH", Effect: registrytest.Answer(403, "")}, kind: ErrDenied, says: "403"},
		"503 for ever":          {fault: &registrytest.Fault{Methods: "PATCH|PUT", Times: -1, Effect: registrytest.Answer(503, "")}, says: "gave up after 6"},
		"a source that fails":   {open: opener(good[:1000], broken), kind: broken, says: "broken"},
		"too few":               {open: opener(good[:1000]), kind: layout.ErrDigest, says: "got 1000 bytes, want 1048576"},
		"too many":              {open: opener(append(bytes.Clone(good), 1)), kind: layout.ErrDigest, says: "more than 1048576"},
		"a source that is not one": {
			fault:  &registrytest.Fault{Methods: "PUT", Path: uploads, Effect: registrytest.Answer(503, "")},
			quirks: registrytest.Quirks{NoStatus: true},
			open: func(ctx context.Context, off int64) (io.ReadCloser, error) {
				if opens++; opens > 1 {
					return opener(again)(ctx, off)
				}
				return opener(good)(ctx, off)
			},
			kind: layout.ErrDigest, says: "want " + describeBytes(good).Digest.String(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks})
			repo := dial(t, reg, "org/m", Options{})
			repo.host.behaviour = tt.host
			if tt.fault != nil {
				reg.Break(*tt.fault)
			}
			open := tt.open
			if open == nil {
				open = opener(good)
			}
			_, err := repo.PushStream(t.Context(), int64(len(good)), open, layout.Watch{})
			checkError(t, err, tt.kind, tt.says, "")
			if !errors.Is(tt.kind, layout.ErrNoStream) && errors.Is(err, layout.ErrNoStream) {
				t.Errorf("got ErrNoStream: %v", err)
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}
