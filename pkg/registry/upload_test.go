package registry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"

	"github.com/carton-oci/carton-oci/internal/registrytest"
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
		"cut behind the last byte": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.CutIn(12 * mib))) },
			sessions: 1, puts: 2, in: 12, read: 16,
		},
		"a registry that keeps nothing": {
			// It takes a MiB, says so, and refuses the rest, four times.
			break_: func(r *registrytest.Registry) {
				tail := func(req *http.Request) bool { return req.Header.Get("Content-Range") != "" }
				first := func(req *http.Request) bool { return !tail(req) }
				r.Break(registrytest.Fault{Methods: "PUT", Match: first, Times: 2, Effect: registrytest.CutIn(mib)})
				r.Break(registrytest.Fault{Methods: "PUT", Match: tail, Times: 2, Effect: registrytest.Answer(400, "")})
			},
			sessions: 3, puts: 5, in: 40, read: 90,
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
			sessions: 1, puts: 3, in: 24, read: 48, // asked again, it says the truth
		},
		"a status that is never true": {
			break_: func(r *registrytest.Registry) {
				r.Break(put(registrytest.CutIn(9 * mib)))
				r.Break(registrytest.Fault{
					Methods: "GET", Path: uploads, Times: -1,
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
		"a success before the bytes are there": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.Answer(201, ""))) },
			sessions: 2, puts: 2, in: 24, read: 24,
		},
		"a session that is gone": {
			break_:   func(r *registrytest.Registry) { r.Break(put(registrytest.Answer(404, ""))) },
			sessions: 2, puts: 2, in: 24, read: 24,
		},
		"a success of what is not stored": { // four of what something before it may say
			break_: func(r *registrytest.Registry) {
				for _, status := range []int{201, 200, 202, 204} {
					r.Break(put(func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
						_, _ = io.Copy(io.Discard, req.Body)
						w.WriteHeader(status)
					}))
				}
			},
			sessions: 3, puts: 5, in: 60, read: 60,
		},
		"a session that is gone, for the blob is there": {
			break_: func(r *registrytest.Registry) {
				r.Break(put(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
					registrytest.Discard(next, req)
					w.WriteHeader(http.StatusNotFound)
				}))
			},
			sessions: 1, puts: 1, in: 12, read: 12,
		},
		"a success without a digest": {
			quirks:   registrytest.Quirks{NoDigestHeader: true},
			sessions: 1, puts: 1, in: 12, read: 12,
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
			if err := repo.Push(t.Context(), layer(desc, src.open), layout.Watch{}); err != nil {
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

// TestPushStall: a registry that takes nothing more loses the request, not the
// upload.
func TestPushStall(t *testing.T) {
	policy := quick
	policy.Stall = time.Second
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
			if err := repo.Push(t.Context(), layer(desc, src.open), layout.Watch{}); err != nil {
				t.Fatal(err)
			}
			if _, ok := reg.Blob("org/m", desc.Digest); !ok {
				t.Error("the blob was not stored")
			}
		})
	}
	t.Run("answers the abort", func(t *testing.T) {
		// In good order, and with a status that would complete the upload.
		reg, aborted := registrytest.New(t, registrytest.Config{}), 0
		repo := dial(t, reg, "org/m", Options{Policy: policy, Wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(req *http.Request) (*http.Response, error) {
				if req.Method != http.MethodPut || aborted > 0 {
					return next.RoundTrip(req)
				}
				aborted++
				<-req.Context().Done()
				return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: req}, nil
			})
		}})
		desc := describeBytes([]byte("x"))
		if err := repo.Push(t.Context(), layer(desc, opener([]byte("x"))), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
		if _, ok := reg.Blob("org/m", desc.Digest); !ok || aborted != 1 {
			t.Errorf("stored: %t, after %d aborted uploads, want it stored after one", ok, aborted)
		}
	})
	t.Run("no session", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{Policy: policy})
		reg.Break(registrytest.Fault{Methods: "POST", Effect: reg.Hang})
		if err := repo.Push(t.Context(), layer(describeBytes([]byte("x")), opener([]byte("x"))), layout.Watch{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a slow source is none", func(t *testing.T) {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{Policy: policy})
		open := func(context.Context, int64) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("a"), slow(3*policy.Stall), strings.NewReader("b"))), nil
		}
		if err := repo.Push(t.Context(), layer(describeBytes([]byte("ab")), open), layout.Watch{}); err != nil {
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
