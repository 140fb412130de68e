package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/hubtest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/hub"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

const token = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"

// quick tries again without much waiting.
var quick = httprange.Policy{MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, Attempts: 4}

func client(t *testing.T, h *hubtest.Hub, token string) *hub.Client {
	t.Helper()
	c, err := hub.New(hub.Options{Endpoint: h.URL, Token: token, Policy: quick})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func noop() pack.Options {
	return pack.Options{Info: carton.Info{Runner: carton.Runner{Name: "noop"}}}
}

// packed is the carton of a repository.
func packed(ctx context.Context, c *hub.Client, repository, revision string) (*pack.Carton, error) {
	s, err := c.Open(ctx, repository, revision)
	if err != nil {
		return nil, err
	}
	return pack.OpenListing(ctx, s.Listing(), noop())
}

// everything reads all members.
func everything(ctx context.Context, src carton.Source) (n int64, err error) {
	members, err := src.Members(ctx)
	for _, m := range members {
		var r io.ReadCloser
		if r, err = src.Open(ctx, m.Path); err != nil {
			return n, err
		}
		k, err := io.Copy(io.Discard, r)
		r.Close()
		if n += k; err != nil {
			return n, err
		}
	}
	return n, err
}

// many are files of every kind: small ones, large ones, empty ones, in folders, with
// names that have to be escaped.
func many() []hubtest.File {
	return []hubtest.File{
		hubtest.Safetensors("model-00001-of-00002.safetensors", 20<<20, 1),
		hubtest.Safetensors("model-00002-of-00002.safetensors", 5<<20+1, 2),
		{Path: "config.json", Content: "{}"},
		{Path: "empty.txt"},
		{Path: "large-empty.bin", Large: true},
		{Path: "a b/100%/q?x=1&y#z/ü+.txt", Content: "odd"},
		{Path: "README.md", Content: "---\nlicense: mit\n---\n"},
		{Path: ".gitattributes", Content: "*.safetensors filter=lfs"},
		{Path: "tokenizer.model", Content: "small, and large", Large: true},
	}
}

// Whoever asks for a repository by an older name, or in other letters, gets it, under
// the name that the hub gives it. A name may be of one word.
func TestANameOfAnotherSpelling(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	for name, want := range map[string]string{"Org/Model": "Org/Model", "gpt2": "openai-community/gpt2", "One": "One"} {
		sha := h.Commit(name, many()...)
		if want != name {
			h.Rename(name, want)
		}
		src, err := packed(t.Context(), client(t, h, ""), strings.ToLower(name), "")
		if err != nil {
			t.Fatal(err)
		}
		if src.Repository != want || src.Snapshot != sha {
			t.Errorf("%s: got %s at %s, want %s at %s", name, src.Repository, src.Snapshot, want, sha)
		}
		if _, err := everything(t.Context(), src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		src.Close()
	}
}

func TestARepositoryOfEveryKindOfFile(t *testing.T) {
	for name, conf := range map[string]hubtest.Config{
		"as it is":             {},
		"in pages":             {PageSize: 2},
		"mirrored":             {PageSize: 3, NextHost: "https://huggingface.co", Path: "/a/b"},
		"signing for a moment": {AddressUses: 2},
		"with xet":             {Xet: true},
		"private":              {Token: token},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t, conf)
			sha := h.Commit("Org/Model", many()...)
			if conf.Token != "" {
				h.Private("Org/Model")
				h.Gate("Org/Model")
			}
			src, err := packed(t.Context(), client(t, h, conf.Token), "org/model", "")
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			if sent := h.Sent.Load(); sent > 200<<10 {
				t.Errorf("to pack it %d bytes of large files were sent, want their beginnings", sent)
			}
			if src.Snapshot != sha || src.Info.License != "MIT" {
				t.Errorf("got the commit %s, the licence %q", src.Snapshot, src.Info.License)
			}
			if n, err := everything(t.Context(), src); err != nil || n < 25<<20 {
				t.Errorf("read %d bytes: %v", n, err)
			}
			if n := h.Leaked.Load(); n > 0 {
				t.Errorf("the storage was sent a token %d times", n)
			}
			if conf.AddressUses == 0 && h.Resolved.Load() > int64(len(many())) {
				t.Errorf("the hub was asked %d times for %d files", h.Resolved.Load(), len(many()))
			}
		})
	}
}

// A file is read by several requests at once, and a reader that is closed gives its
// memory back.
func TestReadAhead(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	f := hubtest.Safetensors("a.safetensors", 40<<20, 1)
	h.Commit("org/m", f)
	s, err := client(t, h, "").Open(t.Context(), "org/m", "main")
	if err != nil {
		t.Fatal(err)
	}
	open := s.Listing().Files[0].OpenRange
	want := make([]byte, 9<<20)
	_, _ = f.ReadAt(want, 7<<20+3)
	var readers []io.ReadCloser
	for range 20 { // more than there is memory for
		r, err := open(t.Context(), 7<<20+3, int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	for i, r := range readers {
		if i%3 == 0 {
			_, _ = io.CopyN(io.Discard, r, 3<<20)
		} else if got, err := io.ReadAll(r); err != nil || string(got) != string(want) {
			t.Errorf("reader %d: got %d bytes that are not those of the range: %v", i, len(got), err)
		}
		r.Close()
	}
	h.Forget()
	r, err := open(t.Context(), 0, 40<<20)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 40<<20 || err != nil {
		t.Errorf("after the addresses were forgotten: got %d bytes, %v", n, err)
	}
	r.Close()
}

func TestALimitIsWaitedFor(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{Resolves: 2, Window: 1500 * time.Millisecond})
	h.Commit("org/m", hubtest.File{Path: "a", Content: "a"}, hubtest.File{Path: "b", Content: "b"}, hubtest.File{Path: "c", Content: "c"})
	var waited atomic.Int64
	policy := quick
	policy.Retrying = func(r httprange.Retry) { waited.Add(int64(r.Wait)) }
	c, err := hub.New(hub.Options{Endpoint: h.URL, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	src, err := packed(t.Context(), c, "org/m", "main")
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	if time.Duration(waited.Load()) < time.Second {
		t.Errorf("waited %s, want what the hub asked for", time.Duration(waited.Load()))
	}
}

// hooked makes a hub that answers some requests otherwise.
func hooked(t *testing.T, hook func(w http.ResponseWriter, r *http.Request) bool) *hubtest.Hub {
	h := hubtest.New(t, hubtest.Config{})
	h.Commit("org/m", many()...)
	h.Hook = hook
	return h
}

// errorOf opens and reads everything.
func errorOf(t *testing.T, h *hubtest.Hub, revision string) error {
	t.Helper()
	src, err := packed(t.Context(), client(t, h, ""), "org/m", revision)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = everything(t.Context(), src)
	return err
}

func onPath(part string, answer func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, part) {
			return false
		}
		answer(w, r)
		return true
	}
}

func status(code int, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func text(s string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		fmt.Fprint(w, s)
	}
}

const sha = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestAHubThatGivesNoGoodAnswer(t *testing.T) {
	one := `[{"type":"file","path":"a","size":1,"oid":"` + sha + `"}]`
	for name, c := range map[string]struct {
		hook     func(http.ResponseWriter, *http.Request) bool
		revision string
		want     error
		text     string
	}{
		"5xx":                       {hook: onPath("/revision/", status(503)), want: httprange.ErrGaveUp},
		"5xx of the storage":        {hook: onPath("/repos/", status(500)), want: httprange.ErrGaveUp},
		"429":                       {hook: onPath("/resolve/", status(429, "RateLimit", `"resolvers";r=0;t=0`, "Retry-After", "0")), want: httprange.ErrGaveUp},
		"429 for an hour":           {hook: onPath("/resolve/", status(429, "RateLimit", `"resolvers";r=0;t=3600`)), want: httprange.ErrRetryAfter},
		"a page of HTML":            {hook: onPath("/revision/", text("<html>", "Content-Type", "text/html")), want: hub.ErrList},
		"no commit":                 {hook: onPath("/revision/", text(`{"sha":"main"}`)), want: hub.ErrList},
		"another commit":            {hook: onPath("/revision/", text(`{"sha":"`+sha+`"}`)), revision: strings.Repeat("b", 40), want: hub.ErrList},
		"two commits":               {hook: onPath("/revision/", text(`{"sha":"`+sha+`","sha":"`+sha+`"}`)), want: hub.ErrList},
		"disabled in its answer":    {hook: onPath("/revision/", text(`{"sha":"`+sha+`","disabled":true}`)), text: "disabled"},
		"no list":                   {hook: onPath("/tree/", text(`{"error":"x"}`)), want: hub.ErrList},
		"a list that is cut":        {hook: onPath("/tree/", text(one[:20])), want: hub.ErrList},
		"a list that has two ends":  {hook: onPath("/tree/", text(one+one)), want: hub.ErrList},
		"an empty page, and a next": {hook: onPath("/tree/", text(`[]`, "Link", `</x?cursor=1>; rel="next"`)), want: hub.ErrList},
		"a page that is its next":   {hook: onPath("/tree/", text(one, "Link", `</x?cursor=1>; rel="next"`)), want: hub.ErrList},
		"a size below 0":            {hook: onPath("/tree/", text(`[{"type":"file","path":"a","size":-1,"oid":"`+sha+`"}]`)), want: hub.ErrList},
		"a size of 2^62":            {hook: onPath("/tree/", text(`[{"type":"file","path":"a","size":4611686018427387904,"oid":"`+sha+`"}]`)), want: hub.ErrList},
		"no hash":                   {hook: onPath("/tree/", text(`[{"type":"file","path":"a","size":1}]`)), want: hub.ErrList},
		"a hash that is none":       {hook: onPath("/tree/", text(`[{"type":"file","path":"a","size":1,"oid":"`+sha+`","lfs":{"oid":"../..","size":1}}]`)), want: hub.ErrList},
		"two sizes":                 {hook: onPath("/tree/", text(`[{"type":"file","path":"a","size":1,"oid":"`+sha+`","lfs":{"oid":"`+strings.Repeat("a", 64)+`","size":2}}]`)), want: hub.ErrList},
		"a kind of its own":         {hook: onPath("/tree/", text(`[{"type":"symlink","path":"a","size":1,"oid":"`+sha+`"}]`)), want: hub.ErrList},
		"a name with ..":            {hook: onPath("/tree/", text(strings.Replace(one, `"a"`, `"a/../../b"`, 1))), want: carton.ErrInsecurePath},
		"an absolute name":          {hook: onPath("/tree/", text(strings.Replace(one, `"a"`, `"/etc/passwd"`, 1))), want: carton.ErrInsecurePath},
		"a name twice":              {hook: onPath("/tree/", text(strings.Replace(one, `}]`, `},`+one[1:], 1))), want: hub.ErrList},
		"a file's commit":           {hook: onPath("/resolve/", text("{}", "X-Repo-Commit", sha)), want: hub.ErrList},
		"a file's hash":             {hook: onPath(".safetensors", text("{}", "X-Linked-Etag", `"`+strings.Repeat("a", 64)+`"`)), want: hub.ErrList},
		"a file's size":             {hook: onPath(".safetensors", text("{}", "X-Linked-Size", "7")), want: hub.ErrList},
		"xet alone":                 {hook: onPath(".safetensors", text("{}", "Content-Type", "application/vnd.xet-fileinfo+json")), text: "xet"},
		"a pointer for a file":      {hook: onPath(".safetensors", text("version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 7\n")), want: httprange.ErrAnswer},
		"other storage's content": {hook: onPath("/repos/", func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("x"))
		}), want: httprange.ErrAnswer},
		"a storage that never allows": {hook: onPath("/repos/", status(403)), text: "403"},
		"redirects without end": {hook: onPath("/resolve/", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.EscapedPath()+"?again", http.StatusFound)
		}), text: "redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := errorOf(t, hooked(t, c.hook), c.revision)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v, want %v %s", err, c.want, c.text)
			}
			if strings.Contains(name, "429") != strings.Contains(fmt.Sprint(hint.Of(err)), "with a token, in HF_TOKEN, they are higher") {
				t.Errorf("got the hints %s", hint.Of(err))
			}
			if strings.Contains(err.Error(), "Signature=") {
				t.Errorf("the error shows a signature: %v", err)
			}
		})
	}
}

func TestAListThatLies(t *testing.T) {
	for name, c := range map[string]struct {
		file hubtest.File
		want error
	}{
		"the hash of a large file": {hubtest.File{Path: "a.bin", Content: "abc", Large: true, ListedHash: strings.Repeat("a", 64)}, hub.ErrList},
		"the size of a large file": {hubtest.File{Path: "a.bin", Content: "abc", Large: true, ListedSize: 4}, hub.ErrList},
		"the hash of a small file": {hubtest.File{Path: "a.txt", Content: "abc", ListedGit: sha}, carton.ErrChecksum},
		"the size of a small file": {hubtest.File{Path: "a.txt", Content: "abc", ListedSize: 4}, hub.ErrList},
		"a pointer that is listed": {hubtest.File{Path: "a.txt", Content: "version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 7\n"}, carton.ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			h := hubtest.New(t, hubtest.Config{})
			h.Commit("org/m", c.file)
			if err := errorOf(t, h, ""); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	// The list and the headers agree, and the content is another.
	h := hubtest.New(t, hubtest.Config{})
	h.Commit("org/m", hubtest.File{Path: "a.bin", Content: "abc", Large: true})
	h.Hook = onPath("/repos/", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("abd"))
	})
	if err := errorOf(t, h, ""); !errors.Is(err, carton.ErrChecksum) {
		t.Errorf("other content of the right size: got %v, want ErrChecksum", err)
	}
}

// A branch that moves is not followed: what was opened is one commit.
func TestARevisionThatMoves(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	first := h.Commit("org/m", many()...)
	src, err := packed(t.Context(), client(t, h, ""), "org/m", "main")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h.Commit("org/m", hubtest.File{Path: "config.json", Content: "other"})
	if _, err := everything(t.Context(), src); err != nil || src.Snapshot != first {
		t.Errorf("got the commit %s, %v, want %s", src.Snapshot, err, first)
	}
}

// A mirror that gives no ranges is read from the beginning, by one request at a time.
func TestAHubWithoutRanges(t *testing.T) {
	h := hubtest.New(t, hubtest.Config{})
	f := hubtest.Safetensors("a.safetensors", 12<<20, 1)
	h.Commit("org/m", f)
	h.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Range")
		return false
	}
	src, err := packed(t.Context(), client(t, h, ""), "org/m", "")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if n, err := everything(t.Context(), src); err != nil || n < 12<<20 {
		t.Errorf("read %d bytes: %v", n, err)
	}
	r, err := src.OpenRange(t.Context(), "model/a.safetensors", 5<<20, 6<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := make([]byte, 6<<20)
	_, _ = f.ReadAt(want, 5<<20)
	if got, err := io.ReadAll(r); err != nil || string(got) != string(want) {
		t.Errorf("a range: got %d bytes that are not those of the file: %v", len(got), err)
	}
}
