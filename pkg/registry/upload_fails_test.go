package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestPushFails breaks an upload for good, and wants one error of the right
// kind, nothing stored and nothing left open.
func TestPushFails(t *testing.T) {
	good := random(8, 2<<20)
	wrong := bytes.Clone(good)
	wrong[1<<20]++
	errDisk := errors.New("disk is broken")
	keepsNothing := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Header.Get("Content-Range") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		registrytest.CutIn(1<<20)(w, req, next)
	}
	tests := map[string]struct {
		quirks registrytest.Quirks
		auth   registrytest.Auth
		fault  *registrytest.Fault
		open   layout.Opener
		kind   error
		says   string
		hint   string
		puts   int
	}{
		"other bytes":       {open: opener(wrong), kind: layout.ErrDigest, says: "want " + describeBytes(good).Digest.String(), puts: 1},
		"fewer bytes":       {open: opener(good[:2<<20-1]), kind: layout.ErrDigest, says: "got 2097151 bytes, want 2097152", puts: 1},
		"no bytes":          {open: opener(nil), kind: layout.ErrDigest, says: "got 0 bytes", puts: 1},
		"more bytes":        {open: opener(append(bytes.Clone(good), 0)), kind: layout.ErrDigest, says: "more than 2097152", puts: 1},
		"a broken source":   {open: opener(good[:1<<20], errDisk), kind: errDisk, says: "disk is broken", puts: 1},
		"broken at its end": {open: opener(good, errDisk), kind: errDisk, says: "disk is broken", puts: 1},
		"no source": {
			open: func(context.Context, int64) (io.ReadCloser, error) { return nil, errDisk },
			kind: errDisk, says: "disk is broken", puts: 1,
		},
		"too large":    {quirks: registrytest.Quirks{MaxRequest: 1<<20 - 1}, kind: layout.ErrLimit, says: "413", hint: "limits the size", puts: 1},
		"larger":       {quirks: registrytest.Quirks{MaxRequest: 1<<20 - 1}, kind: layout.ErrLimit, says: "413", hint: "SIZE cuts safetensors", puts: 1},
		"503 for ever": {fault: &registrytest.Fault{Methods: "PUT", Times: -1, Effect: registrytest.Answer(503, "")}, says: "gave up after 6 attempts", puts: 6},
		"keeps nothing": {
			fault: &registrytest.Fault{Methods: "PUT", Times: -1, Effect: keepsNothing},
			says:  "gave up after 6 attempts", puts: 13,
		},
		"400": {
			fault: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(400, `{"errors":[{"code":"DIGEST_INVALID","message":"no"}]}`)},
			kind:  layout.ErrDigest, says: `"digest invalid: no"`, puts: 1,
		},
		"wrong digest stored": {quirks: registrytest.Quirks{DigestHeader: testDigest}, kind: layout.ErrDigest, says: "stored", puts: 1},
		"not logged in":       {auth: registrytest.Auth{Users: map[string]string{"x": "y"}}, kind: ErrUnauthorized, says: "401", hint: "registry.Client.Login"},
		"no token":            {auth: registrytest.Auth{Users: map[string]string{"x": "y"}, Bearer: true}, kind: ErrUnauthorized, says: "401", hint: "registry.Client.Login"},
		"denied":              {auth: registrytest.Auth{Denied: []string{"org/m"}}, kind: ErrDenied, says: `"denied: requested access to the resource is denied"`, hint: "registry.Client.Login"},
		"denied in the middle": {
			fault: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(403, `{"errors":[{"code":"DENIED"}]}`)},
			kind:  ErrDenied, says: `"denied"`, puts: 1,
		},
		"a pause without end": {
			fault: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(503, "", "Retry-After", "1000000000")},
			says:  "longer pause", puts: 1,
		},
		"no repository": {
			fault: &registrytest.Fault{Methods: "POST", Effect: registrytest.Answer(404, `{"errors":[{"code":"NAME_UNKNOWN","message":"repository does not exist"}]}`)},
			kind:  layout.ErrNotFound, says: "does not exist", hint: "created before",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
			if tt.fault != nil {
				reg.Break(*tt.fault)
			}
			open := tt.open
			if open == nil {
				open = opener(good)
			}
			desc := describeBytes(good)
			err := repo.Push(t.Context(), layer(desc, open), layout.Watch{})
			checkError(t, err, tt.kind, tt.says, tt.hint)
			if _, ok := reg.Blob("org/m", desc.Digest); ok && tt.quirks.DigestHeader == "" {
				t.Error("the blob was stored")
			}
			if got := reg.Count("PUT", ""); got > tt.puts { // none where the source is quicker than the socket
				t.Errorf("got %d PUTs, want at most %d", got, tt.puts)
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type temporary struct{ error }

func (temporary) Temporary() bool { return true }

// TestPushTemporarySource: a source that says that it may do better is not
// opened again here, and nothing stays of what it gave.
func TestPushTemporarySource(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	good := random(10, 8<<20)
	bad := temporary{errors.New("the host gave other bytes")}
	for name, open := range map[string]layout.Opener{
		"at the end":    opener(random(9, 8<<20), bad), // as long as the right one
		"in the middle": opener(random(9, 5<<20), bad),
	} {
		err := repo.Push(t.Context(), layer(describeBytes(good), open), layout.Watch{})
		checkError(t, err, bad, "other bytes", "")
		if n := reg.Uploads(); n != 0 {
			t.Errorf("%s: %d uploads are left open", name, n)
		}
	}
	if got := reg.Count("POST", uploads); got != 2 {
		t.Errorf("got %d sessions, want 2", got)
	}
	if err := repo.Push(t.Context(), layer(describeBytes(good), opener(good)), layout.Watch{}); err != nil {
		t.Fatal(err)
	}
}

// TestPushCancelled: a cancelled push ends at once. The upload is left to whoever
// goes on with it where it is remembered, and cancelled where nobody can.
func TestPushCancelled(t *testing.T) {
	for name, tt := range map[string]struct {
		dir  string
		left int
	}{"remembered": {t.TempDir(), 1}, "forgotten": {"", 0}} {
		t.Run(name, func(t *testing.T) { pushCancelled(t, tt.dir, tt.left) })
	}
}

func pushCancelled(t *testing.T, dir string, left int) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{StateDir: dir})
	ctx, cancel := context.WithCancel(t.Context())
	reg.Break(put(reg.StallIn(1 << 20)))
	b := random(3, 40<<20)
	done := make(chan error, 1)
	go func() {
		done <- repo.Push(ctx, layer(describeBytes(b), opener(b)), layout.Watch{Moved: func(off int64) {
			if off > 2<<20 {
				cancel()
			}
		}})
	}()
	select {
	case err := <-done:
		checkError(t, err, context.Canceled, "canceled", "")
	case <-time.After(10 * time.Second):
		t.Fatal("the push goes on")
	}
	if n := reg.Uploads(); n != left {
		t.Errorf("%d uploads are open, want %d", n, left)
	}
}

func TestPushRefusesBadDescriptors(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	for _, desc := range []ocispec.Descriptor{
		{},
		{Digest: "sha256:../../x", Size: 1},
		{Digest: "sha512:" + describeBytes(nil).Digest[7:] + describeBytes(nil).Digest[7:], Size: 1},
		{Digest: testDigest, Size: -1},
	} {
		checkError(t, repo.Push(t.Context(), layer(desc, opener(nil)), layout.Watch{}), layout.ErrFormat, "sha256", "")
	}
	if n := len(reg.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
