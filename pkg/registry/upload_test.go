package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const uploads = "/blobs/uploads/"

// TestPushRecovers breaks an upload in every way that may pass, and wants the
// blob to arrive with no more bytes sent than the case allows.
func TestPushRecovers(t *testing.T) {
	const mib = 1 << 20
	size := 12 * mib
	tests := map[string]struct {
		quirks   registrytest.Quirks
		auth     registrytest.Auth
		break_   func(*registrytest.Registry)
		sessions int   // POSTs
		puts     int   // PUTs, 0: any number
		in       int64 // most MiB on the wire
		read     int64 // most MiB of the source
	}{
		"nothing": {sessions: 1, puts: 1, in: 12, read: 12},
		"cut at 9 of 12 MiB": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 1, puts: 2, in: 12, read: 18,
		},
		"cut before the first byte": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(0))) },
			sessions: 2, puts: 2, in: 12, read: 24,
		},
		"cut after every MiB": {
			break_: func(r *registrytest.Registry) {
				f := put(registrytest.CutIn(mib))
				f.Times = 11
				r.Break(f)
			},
			sessions: 1, puts: 12, in: 12, read: 100,
		},
		"addresses that change": {
			quirks:   registrytest.Quirks{NewLocation: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 1, puts: 2, in: 12, read: 18,
		},
		"relative addresses": {
			quirks:   registrytest.Quirks{NewLocation: true, RelativeLocation: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 1, puts: 2, in: 12, read: 18,
		},
		"Quay's status": {
			quirks:   registrytest.Quirks{QuayRange: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 1, puts: 2, in: 12, read: 18,
		},
		"no status": {
			quirks:   registrytest.Quirks{NoStatus: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 2, puts: 2, in: 21, read: 24,
		},
		"a status that is stuck": {
			quirks:   registrytest.Quirks{StuckRange: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 2, puts: 2, in: 21, read: 24,
		},
		"addresses for one request": {
			quirks:   registrytest.Quirks{OneShot: true},
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(9 * mib))) },
			sessions: 2, puts: 2, in: 21, read: 24,
		},
		"a status that says too little": {
			break_: func(r *registrytest.Registry) {
				r.Break(put(registrytest.CutIn(9 * mib)))
				r.Break(registrytest.Fault{
					Methods: "GET", Path: uploads,
					Effect: registrytest.Answer(204, "", "Range", "0-1048575"),
				})
			},
			sessions: 2, puts: 3, in: 33, read: 48,
		},
		"a status that says too much": {
			break_: func(r *registrytest.Registry) {
				r.Break(put(registrytest.CutIn(9 * mib)))
				r.Break(registrytest.Fault{
					Methods: "GET", Path: uploads,
					Effect: registrytest.Answer(204, "", "Range", "0-99999999999"),
				})
			},
			sessions: 2, puts: 2, in: 21, read: 24,
		},
		"a session that is gone": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.Answer(404, ""))) },
			sessions: 2, puts: 2, in: 24, read: 24,
		},
		"503 five times": {
			break_: func(r *registrytest.Registry) {
				f := put(registrytest.Answer(503, ""))
				f.Times = 5
				r.Break(f)
			},
			sessions: 6, puts: 6, in: 72, read: 72,
		},
		"429": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.Answer(429, "", "Retry-After", "0"))) },
			sessions: 2, puts: 2, in: 24, read: 24,
		},
		"503 to the question": {
			break_: func(r *registrytest.Registry) {
				r.Break(registrytest.Fault{Methods: "POST", Times: 3, Effect: registrytest.Answer(503, "")})
			},
			sessions: 4, puts: 1, in: 12, read: 12,
		},
		"a lost answer": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.LoseAnswer)) },
			sessions: 1, puts: 1, in: 12, read: 12,
		},
		"504 of a proxy after the end": {
			break_: func(r *registrytest.Registry) {
				r.Break(put(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
					registrytest.Discard(next, req)
					w.WriteHeader(http.StatusGatewayTimeout)
				}))
			},
			sessions: 1, puts: 1, in: 12, read: 12,
		},
		"tokens for one request": {
			auth:     registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true, TokenUses: 1},
			sessions: 2, puts: 2, in: 24, read: 24,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
			if tt.break_ != nil {
				tt.break_(reg)
			}
			src := &source{b: random(7, size)}
			desc := describeBytes(src.b)
			if err := repo.Push(t.Context(), desc, src.open, nil); err != nil {
				t.Fatal(err)
			}
			if got, ok := reg.Blob("org/m", desc.Digest); !ok || !bytes.Equal(got, src.b) {
				t.Error("the registry has other bytes than were pushed")
			}
			if got := reg.Count("POST", uploads); got != tt.sessions {
				t.Errorf("got %d sessions, want %d", got, tt.sessions)
			}
			if got := reg.Count("PUT", uploads); got != tt.puts {
				t.Errorf("got %d PUTs, want %d", got, tt.puts)
			}
			if in, _ := reg.Bytes("PUT", uploads); in > tt.in*mib {
				t.Errorf("got %d bytes on the wire, want at most %d", in, tt.in*mib)
			}
			if read := src.read.Load(); read > tt.read*mib {
				t.Errorf("read %d bytes of the source, want at most %d", read, tt.read*mib)
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

func put(e registrytest.Effect) registrytest.Fault {
	return registrytest.Fault{Methods: "PUT", Path: uploads, Effect: e}
}

// TestPushFails breaks an upload for good, and wants one error of the right
// kind, nothing stored and nothing left open.
func TestPushFails(t *testing.T) {
	good := random(8, 2<<20)
	wrong := bytes.Clone(good)
	wrong[1<<20]++
	errDisk := errors.New("disk is broken")
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
		"too large":    {quirks: registrytest.Quirks{MaxBody: 1 << 20}, kind: layout.ErrLimit, says: "413", hint: "limits the size", puts: 1},
		"503 for ever": {fault: &registrytest.Fault{Methods: "PUT", Times: -1, Effect: registrytest.Answer(503, "")}, says: "gave up after 6 attempts", puts: 6},
		"400": {
			fault: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(400, `{"errors":[{"code":"DIGEST_INVALID","message":"no"}]}`)},
			kind:  layout.ErrDigest, says: `"digest invalid: no"`, puts: 1,
		},
		"wrong digest stored": {quirks: registrytest.Quirks{DigestHeader: testDigest}, kind: layout.ErrDigest, says: "stored", puts: 1},
		"not logged in":       {auth: registrytest.Auth{Users: map[string]string{"x": "y"}}, kind: ErrUnauthorized, says: "401", hint: "carton-oci login"},
		"no token":            {auth: registrytest.Auth{Users: map[string]string{"x": "y"}, Bearer: true}, kind: ErrUnauthorized, says: "401", hint: "carton-oci login"},
		"denied":              {auth: registrytest.Auth{Denied: []string{"org/m"}}, kind: ErrDenied, says: `"denied: requested access to the resource is denied"`, hint: "carton-oci login"},
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
			err := repo.Push(t.Context(), desc, open, nil)
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

// opener opens bytes, and ends with err where there is one.
func opener(b []byte, err ...error) layout.Opener {
	return func(_ context.Context, off int64) (io.ReadCloser, error) {
		r := io.Reader(bytes.NewReader(b[min(off, int64(len(b))):]))
		if len(err) > 0 {
			r = io.MultiReader(r, failing{err[0]})
		}
		return io.NopCloser(r), nil
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// checkError wants one printable line of a kind, that says something and hints
// at something.
func checkError(t testing.TB, err, kind error, says, hints string) {
	t.Helper()
	switch {
	case err == nil:
		t.Fatal("got no error")
	case kind != nil && !errors.Is(err, kind):
		t.Errorf("got %v, want it to be %v", err, kind)
	case !strings.Contains(err.Error(), says):
		t.Errorf("got %q, want it to say %q", err, says)
	case strings.ContainsAny(err.Error(), "\n\r\x1b"):
		t.Errorf("%q is not one printable line", err)
	}
	if got := strings.Join(hint.Of(err), "|"); !strings.Contains(got, hints) {
		t.Errorf("got the hint %q, want it to say %q", got, hints)
	}
}

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
		err := repo.Push(t.Context(), describeBytes(good), open, nil)
		checkError(t, err, bad, "other bytes", "")
		if n := reg.Uploads(); n != 0 {
			t.Errorf("%s: %d uploads are left open", name, n)
		}
	}
	if got := reg.Count("POST", uploads); got != 2 {
		t.Errorf("got %d sessions, want 2", got)
	}
	if err := repo.Push(t.Context(), describeBytes(good), opener(good), nil); err != nil {
		t.Fatal(err)
	}
}

// TestPushStall: a registry that takes nothing more loses the request, not the
// upload.
func TestPushStall(t *testing.T) {
	policy := quick
	policy.Stall = 100 * time.Millisecond
	for name, effect := range map[string]func(*registrytest.Registry) registrytest.Effect{
		"in the middle": func(r *registrytest.Registry) registrytest.Effect { return r.StallIn(9 << 20) },
		"at once":       func(r *registrytest.Registry) registrytest.Effect { return r.Hang },
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{Policy: policy})
			reg.Break(put(effect(reg)))
			src := &source{b: random(7, 40<<20)} // more than sockets hold
			desc := describeBytes(src.b)
			if err := repo.Push(t.Context(), desc, src.open, nil); err != nil {
				t.Fatal(err)
			}
			if _, ok := reg.Blob("org/m", desc.Digest); !ok {
				t.Error("the blob was not stored")
			}
		})
	}
	t.Run("no session", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{Policy: policy})
		reg.Break(registrytest.Fault{Methods: "POST", Effect: reg.Hang})
		if err := repo.Push(t.Context(), describeBytes([]byte("x")), opener([]byte("x")), nil); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a slow source is none", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{Policy: policy})
		open := func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("a"), slow(3*policy.Stall), strings.NewReader("b"))), nil
		}
		if err := repo.Push(t.Context(), describeBytes([]byte("ab")), open, nil); err != nil {
			t.Fatal(err)
		}
		if got := reg.Count("PUT", uploads); got != 1 {
			t.Errorf("got %d PUTs, want 1", got)
		}
	})
}

// slow ends after a while.
type slow time.Duration

func (s slow) Read([]byte) (int, error) {
	time.Sleep(time.Duration(s))
	return 0, io.EOF
}

// TestPushCancelled: a cancelled push ends at once, and leaves the upload to
// whoever goes on with it.
func TestPushCancelled(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	reg.Break(put(reg.StallIn(1 << 20)))
	b := random(3, 40<<20)
	done := make(chan error, 1)
	go func() {
		done <- repo.Push(ctx, describeBytes(b), opener(b), func(off int64) {
			if off > 2<<20 {
				cancel()
			}
		})
	}()
	select {
	case err := <-done:
		checkError(t, err, context.Canceled, "canceled", "")
	case <-time.After(10 * time.Second):
		t.Fatal("the push goes on")
	}
	if n := reg.Uploads(); n != 1 {
		t.Errorf("%d uploads are open, want 1", n)
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
		checkError(t, repo.Push(t.Context(), desc, opener(nil), nil), layout.ErrFormat, "want", "")
	}
	if n := len(reg.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
