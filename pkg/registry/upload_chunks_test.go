package registry

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestChunks sends a blob in chunks to registries of every kind, and wants it to
// arrive with as many requests and bytes as the kind asks for.
func TestChunks(t *testing.T) {
	const mib = 1 << 20
	patch := func(e registrytest.Effect) registrytest.Fault {
		return registrytest.Fault{Methods: "PATCH", Path: uploads, After: 1, Effect: e}
	}
	tests := map[string]struct {
		quirks  registrytest.Quirks
		auth    registrytest.Auth
		host    behaviour
		chunk   int64 // Options.ChunkSize in MiB; 0 is 4, negative none
		size    int   // of the blob, 0 is 12 MiB
		break_  func(*registrytest.Registry)
		posts   int
		patches string // their lengths in MiB, or in bytes where that is not whole
		puts    string // the same
		gets    int    // of a status; -1 is any number
		read    int64  // most bytes of the source, 0 is size
	}{
		"as the specification has it": {posts: 1, patches: "4 4 4", puts: "0"},
		"a rest":                      {size: 9 * mib, posts: 1, patches: "4 4 1", puts: "0"},
		"not a single byte":           {size: 8*mib + 1, posts: 1, patches: "4 4194303b 2b", puts: "0"},
		"but for the last":            {size: 2*mib + 1, chunk: 1, posts: 1, patches: "1 1048575b 2b", puts: "0"},
		"as small as a chunk":         {size: 4 * mib, posts: 1, puts: "4"},
		"one byte":                    {size: 1, posts: 1, puts: "1b"},
		"nothing":                     {size: -1, posts: 1, puts: "0"},
		"a least length":              {quirks: registrytest.Quirks{MinChunk: 5 * mib}, posts: 1, patches: "5 5 2", puts: "0"},
		"a least length over all":     {quirks: registrytest.Quirks{MinChunk: 1 << 60}, posts: 1, puts: "12"},
		"addresses that change":       {quirks: registrytest.Quirks{NewLocation: true}, posts: 1, patches: "4 4 4", puts: "0"},
		"relative addresses":          {quirks: registrytest.Quirks{NewLocation: true, RelativeLocation: true}, posts: 1, patches: "4 4 4", puts: "0"},
		"no Location":                 {quirks: registrytest.Quirks{NoPatchLocation: true}, posts: 1, patches: "4 4 4", puts: "0"},
		"200":                         {quirks: registrytest.Quirks{PatchStatus: 200}, posts: 1, patches: "4 4 4", puts: "0"},
		"201":                         {quirks: registrytest.Quirks{PatchStatus: 201}, posts: 1, patches: "4 4 4", puts: "0"},
		"204":                         {quirks: registrytest.Quirks{PatchStatus: 204}, posts: 1, patches: "4 4 4", puts: "0"},
		"no Range":                    {quirks: registrytest.Quirks{NoPatchRange: true}, posts: 1, patches: "4 4 4", puts: "0", gets: 3},
		"no Range and no status":      {quirks: registrytest.Quirks{NoPatchRange: true, NoStatus: true}, posts: 1, patches: "4 4 4", puts: "0", gets: 1},
		"bytes=, one too many": {
			quirks: registrytest.Quirks{QuayRange: true, PatchRange: func(s string) string {
				var last int64
				fmt.Sscanf(s, "0-%d", &last)
				return fmt.Sprintf("bytes=0-%d", last+1)
			}},
			posts: 1, patches: "4 4 4", puts: "0",
		},
		"one too many": {
			quirks: registrytest.Quirks{PatchRange: func(s string) string {
				var last int64
				fmt.Sscanf(s, "0-%d", &last)
				return fmt.Sprintf("0-%d", last+1)
			}},
			posts: 1, patches: "4 4 4", puts: "0",
		},
		"ECR: 201, a Range that stays behind the first chunk": {
			quirks: registrytest.Quirks{PatchStatus: 201, FirstRange: true}, host: behaviour{rangeNeverAdvances: true},
			posts: 1, patches: "4 4 4", puts: "0",
		},
		"the same of an unknown host": {
			quirks: registrytest.Quirks{PatchStatus: 201, FirstRange: true}, posts: 1, patches: "4 4 4", puts: "0", gets: 1,
		},
		"a Range of nothing": {quirks: registrytest.Quirks{StuckRange: true}, posts: 1, patches: "4 4 4", puts: "0", gets: 1},
		"keeps a part": {
			quirks: registrytest.Quirks{PatchKeeps: 3 * mib}, posts: 1, patches: "4 4 4 3", puts: "0", gets: 3, read: 30 * mib,
		},
		"GHCR: no chunk over 4 MiB":       {quirks: registrytest.Quirks{MaxPatch: 4*mib - 1}, posts: 2, patches: "4", puts: "12", read: 24 * mib},
		"GHCR, known":                     {quirks: registrytest.Quirks{MaxPatch: 2 * mib}, host: behaviour{maxChunk: 2 * mib}, size: 5 * mib, posts: 1, patches: "2 2 1", puts: "0"},
		"no chunks, known":                {quirks: registrytest.Quirks{NoPatch: 500}, host: behaviour{maxChunk: noChunks, singleUseURL: true}, posts: 1, puts: "12"},
		"no chunks: 405":                  {quirks: registrytest.Quirks{NoPatch: 405}, posts: 2, patches: "4", puts: "12", read: 24 * mib},
		"no chunks: 501":                  {quirks: registrytest.Quirks{NoPatch: 501}, posts: 2, patches: "4", puts: "12", read: 24 * mib},
		"no chunks: 400":                  {quirks: registrytest.Quirks{NoPatch: 400}, posts: 2, patches: "4", puts: "12", read: 24 * mib},
		"no chunks: 404":                  {quirks: registrytest.Quirks{NoPatch: 404}, posts: 3, patches: "4 4", puts: "12", read: 24 * mib},
		"GAR: an address for one request": {quirks: registrytest.Quirks{OneShot: true}, posts: 3, patches: "4 4 4 4", puts: "12", read: 40 * mib},
		"Quay, known": {
			quirks: registrytest.Quirks{QuayRange: true, MaxBody: 8 * mib}, host: behaviour{maxPut: 8 * mib}, chunk: -1, size: 8 * mib, posts: 1, puts: "8",
		},
		"413": {
			quirks: registrytest.Quirks{MaxBody: 8 * mib}, chunk: -1, posts: 2, patches: "4 4 4", puts: "12 0", read: 24 * mib,
		},
		"413 to chunks too": {
			quirks: registrytest.Quirks{MaxRequest: 2 * mib}, chunk: -1, size: 5 * mib, posts: 3,
			patches: "4 1 1 1 1 1", puts: "5 0", read: 15 * mib,
		},
		"a reset instead of 413": {
			quirks: registrytest.Quirks{MaxBody: 8 * mib, ResetLarge: true}, chunk: -1,
			posts: 3, patches: "4 4 4", puts: "12 12 0", gets: 2, read: 36 * mib,
		},
		"an answer before the chunk has come": {
			break_: func(r *registrytest.Registry) {
				r.Break(registrytest.Fault{
					Methods: "PATCH", Effect: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
						w.Header().Set("Range", "0-16777215")
						w.WriteHeader(http.StatusAccepted)
						_ = http.NewResponseController(w).Flush()
						time.Sleep(100 * time.Millisecond) // or the reset overtakes it
						panic(http.ErrAbortHandler)
					},
				})
			},
			chunk: 16, size: 40 * mib, posts: 2, patches: "16 16 16 8", puts: "0", gets: -1, read: 56 * mib,
		},
		"cut in a chunk": {
			break_: func(r *registrytest.Registry) { r.Break(patch(registrytest.CutIn(3 * mib))) },
			posts:  1, patches: "4 4 4 1", puts: "0", gets: 1, read: 24 * mib,
		},
		"a chunk's answer is lost": {
			break_: func(r *registrytest.Registry) { r.Break(patch(registrytest.LoseAnswer)) },
			posts:  1, patches: "4 4 4", puts: "0", gets: 1, read: 12 * mib,
		},
		"503 to a chunk": {
			break_: func(r *registrytest.Registry) { r.Break(patch(registrytest.Answer(503, "", "Retry-After", "0"))) },
			posts:  1, patches: "4 4 4 4", puts: "0", gets: 1, read: 24 * mib,
		},
		"the session is gone": {
			break_: func(r *registrytest.Registry) { r.Break(patch(registrytest.Answer(404, ""))) },
			posts:  2, patches: "4 4 4 4 4", puts: "0", read: 24 * mib,
		},
		"416 in the middle": {
			break_: func(r *registrytest.Registry) { r.Break(patch(registrytest.Answer(416, ""))) },
			posts:  2, patches: "4 4 4 4 4", puts: "0", gets: 1, read: 24 * mib,
		},
		"the last answer is lost": {
			break_: func(r *registrytest.Registry) { r.Break(put(registrytest.LoseAnswer)) },
			posts:  1, patches: "4 4 4", puts: "0", read: 12 * mib,
		},
		"the last answer is 503": {
			break_: func(r *registrytest.Registry) { r.Break(put(registrytest.Answer(503, ""))) },
			posts:  1, patches: "4 4 4", puts: "0 0", gets: 1, read: 12 * mib,
		},
		"tokens for one request": {
			auth:  registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true, TokenUses: 1},
			posts: 2, patches: "4 4 4 4 4 4", puts: "0 0", read: 48 * mib,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			size := tt.size
			switch {
			case size == 0:
				size = 12 * mib
			case size < 0:
				size = 0
			}
			chunk := max(tt.chunk, 0)
			if tt.chunk == 0 {
				chunk = 4
			}
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p"), ChunkSize: chunk * mib})
			repo.host.behaviour = tt.host
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
			if got := reg.Count("POST", uploads); got != tt.posts {
				t.Errorf("got %d sessions, want %d", got, tt.posts)
			}
			if got := lengths(reg, "PATCH"); got != tt.patches {
				t.Errorf("got chunks of %q, want %q", got, tt.patches)
			}
			if got := lengths(reg, "PUT"); got != tt.puts {
				t.Errorf("got PUTs of %q, want %q", got, tt.puts)
			}
			if got := reg.Count("GET", uploads); got != tt.gets && tt.gets >= 0 {
				t.Errorf("asked for the status %d times, want %d", got, tt.gets)
			}
			if read, most := src.read.Load(), max(tt.read, int64(size)); read > most {
				t.Errorf("read %d bytes of the source, want at most %d", read, most)
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

// lengths returns how many bytes the requests of a method promised, in MiB.
func lengths(reg *registrytest.Registry, method string) string {
	var list []string
	for _, rec := range reg.Requests() {
		if rec.Method != method || !strings.Contains(rec.Path, uploads) {
			continue
		}
		var n int64
		fmt.Sscan(rec.Header.Get("Content-Length"), &n)
		switch text := fmt.Sprint(n >> 20); {
		case n%(1<<20) != 0:
			list = append(list, fmt.Sprintf("%db", n))
		default:
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

// TestChunksAreLearnt: what one blob has found out, the next knows.
func TestChunksAreLearnt(t *testing.T) {
	for name, tt := range map[string]struct {
		quirks        registrytest.Quirks
		chunk         int64
		patches, puts string // of the second blob
	}{
		"one piece is too large": {quirks: registrytest.Quirks{MaxRequest: 1 << 20}, patches: "1 1 1", puts: "0"},
		"chunks are not taken":   {quirks: registrytest.Quirks{NoPatch: 405}, chunk: 1 << 20, puts: "3"},
		"chunks are too large":   {quirks: registrytest.Quirks{MaxRequest: 1 << 20}, chunk: 4 << 20, patches: "1 1 1", puts: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks})
			repo := dial(t, reg, "org/m", Options{ChunkSize: tt.chunk})
			for _, blob := range [][]byte{random(1, 5<<20), random(2, 3<<20)} {
				reg.Forget()
				if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
					t.Fatal(err)
				}
			}
			if patches, puts := lengths(reg, "PATCH"), lengths(reg, "PUT"); patches != tt.patches || puts != tt.puts {
				t.Errorf("got chunks of %q and PUTs of %q, want %q and %q", patches, puts, tt.patches, tt.puts)
			}
		})
	}
}

// TestChunksFail: a blob that can be sent in no way is one error, and nothing is
// left open.
func TestChunksFail(t *testing.T) {
	good := random(8, 5<<20)
	wrong := bytes.Clone(good)
	wrong[2<<20]++
	for name, tt := range map[string]struct {
		quirks registrytest.Quirks
		host   behaviour
		fault  *registrytest.Fault
		whole  bool // no ChunkSize
		open   layout.Opener
		kind   error
		says   string
	}{
		"wrong bytes":           {open: opener(wrong), kind: layout.ErrDigest, says: "want " + describeBytes(good).Digest.String()},
		"too few":               {open: opener(good[:4<<20]), kind: layout.ErrDigest, says: "got 4194304 bytes"},
		"too many":              {open: opener(append(bytes.Clone(good), 1)), kind: layout.ErrDigest, says: "more than"},
		"413 to everything":     {quirks: registrytest.Quirks{MaxRequest: 1}, kind: layout.ErrLimit, says: "413"},
		"413, and no chunks":    {quirks: registrytest.Quirks{MaxBody: 1 << 20, NoPatch: 405}, kind: layout.ErrLimit, says: "413"},
		"no chunks, and 413":    {quirks: registrytest.Quirks{MaxBody: 1 << 20, NoPatch: 405}, whole: true, kind: layout.ErrLimit, says: "405"},
		"413, no chunks, known": {quirks: registrytest.Quirks{MaxBody: 1 << 20}, host: behaviour{maxChunk: noChunks}, kind: layout.ErrLimit, says: "413"},
		"403":                   {fault: &registrytest.Fault{Methods: "PATCH", Effect: registrytest.Answer(403, "")}, kind: ErrDenied, says: "403"},
		"somewhere else":        {fault: &registrytest.Fault{Methods: "PATCH", Effect: registrytest.Answer(202, "", "Location", "http://other.example/")}, kind: ErrUnsafe, says: "other.example"},
		"503 for ever":          {fault: &registrytest.Fault{Methods: "PATCH|PUT", Times: -1, Effect: registrytest.Answer(503, "")}, says: "gave up after 6"},
		"a pause without end":   {fault: &registrytest.Fault{Methods: "PATCH", Effect: registrytest.Answer(429, "", "Retry-After", "1000000000")}, says: "longer pause"},
		"takes chunks, has no one": {quirks: registrytest.Quirks{MaxBody: 1 << 20}, fault: &registrytest.Fault{Methods: "PATCH", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusAccepted)
		}}, says: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks})
			opts := Options{ChunkSize: 2 << 20}
			if tt.whole {
				opts.ChunkSize = 0
			}
			repo := dial(t, reg, "org/m", opts)
			repo.host.behaviour = tt.host
			if tt.fault != nil {
				reg.Break(*tt.fault)
			}
			open := tt.open
			if open == nil {
				open = opener(good)
			}
			desc := describeBytes(good)
			checkError(t, repo.Push(t.Context(), layer(desc, open), layout.Watch{}), tt.kind, tt.says, "")
			if _, ok := reg.Blob("org/m", desc.Digest); ok {
				t.Error("the blob was stored")
			}
			if n := reg.Uploads(); n != 0 {
				t.Errorf("%d uploads are left open", n)
			}
		})
	}
}

// TestEndTooLarge: a registry that takes chunks and calls the request too large that
// completes them, which has nothing in it, takes the blob in no way.
func TestEndTooLarge(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	reg.Break(registrytest.Fault{Methods: "PUT", Path: uploads, Times: -1, Effect: registrytest.Answer(http.StatusRequestEntityTooLarge, "")})
	repo := dial(t, reg, "org/m", Options{})
	b := random(2, 6<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := repo.Push(ctx, layer(describeBytes(b), opener(b)), layout.Watch{})
	checkError(t, err, ErrTooLarge, "413", "limits the size")
	if n := reg.Count("PUT", uploads); n != 2 {
		t.Errorf("got %d PUTs, want one of the whole and one behind chunks", n)
	}
}

// TestCrumbs: a registry that keeps a byte of every chunk, or of every PUT, is given
// up, or sent the blob in another way: what it is sent again and again is no
// progress.
func TestCrumbs(t *testing.T) {
	b := random(2, 6<<20)
	for name, c := range map[string]struct {
		quirks registrytest.Quirks
		opts   Options
		fault  registrytest.Fault
	}{
		"of every chunk": {quirks: registrytest.Quirks{PatchKeeps: 1}, opts: Options{ChunkSize: 1 << 20}},
		"of every PUT":   {fault: registrytest.Fault{Methods: "PUT", Path: uploads, Times: -1, Effect: registrytest.CutIn(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := registrytest.New(t, registrytest.Config{Quirks: c.quirks})
			if c.fault.Effect != nil {
				reg.Break(c.fault)
			}
			c.opts.Policy = Policy{Attempts: 4, MinBackoff: 50 * time.Millisecond, MaxBackoff: 50 * time.Millisecond, Stall: 5 * time.Second}
			repo := dial(t, reg, "org/m", c.opts)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := repo.Push(ctx, layer(describeBytes(b), opener(b)), layout.Watch{})
			_, arrived := reg.Blob("org/m", describeBytes(b).Digest) // in one piece, in the end
			if arrived != (err == nil) || ctx.Err() != nil || reg.Count("PUT|PATCH", uploads) > 12 {
				t.Errorf("got %v after %d requests", err, reg.Count("PUT|PATCH", uploads))
			}
		})
	}
}
