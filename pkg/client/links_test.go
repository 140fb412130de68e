package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/cartontest"
	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

func TestWhichLinksNameABlobOfAnAllowedRepository(t *testing.T) {
	c := fresh(Options{AllowLinkRepos: []string{"H.io/org/m", "docker.io/org/m"}}).call()
	f, err := c.links(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := f.(*linkRepos)
	hash := strings.Repeat("a", 64)
	blob := "/blobs/sha256:" + hash
	for url, want := range map[string]bool{
		"https://h.io/v2/org/m" + blob:                                  true,
		"https://H.IO/v2/org/m" + blob:                                  true,
		"https://registry-1.docker.io/v2/org/m" + blob:                  true,
		"https://h.io/v2/other" + blob:                                  false,
		"https://h.io/v2/org/m/n" + blob:                                false,
		"https://h.io/v2/org/x/../m" + blob:                             false,
		"https://h.io:444/v2/org/m" + blob:                              false,
		"https://h.io.evil.io/v2/org/m" + blob:                          false,
		"https://user:password@h.io/v2/org/m" + blob:                    false,
		"https://h.io/v2/org/m" + blob + "?x=1":                         false,
		"https://h.io/v2/org/m/blobs/sha256:" + strings.Repeat("b", 64): false,
		"https://h.io/v2/org/m/manifests/1":                             false,
		"https://h.io/files/" + hash:                                    false,
		"not a URL\x7f":                                                 false,
	} {
		got, _ := s.of(links.Link{Hash: hash, URL: url})
		if (got != s.next) != want {
			t.Errorf("%s: with credentials: %v, want %v", url, got != s.next, want)
		}
	}
	for _, bad := range []string{"h.io", "h.io/m:1", "https://h.io/m", "u:p@h.io/m", ""} {
		if _, err := New(Options{AllowLinkRepos: []string{bad}}); !errors.Is(err, location.ErrLocation) {
			t.Errorf("%q: got %v, want location.ErrLocation", bad, err)
		}
		if _, err := New(Options{AllowLinkHosts: []string{"https://" + bad}}); !errors.Is(err, location.ErrLocation) {
			t.Errorf("%q: got %v, want location.ErrLocation", bad, err)
		}
	}
}

// A store inside a struct does what it does alone: a registry has addresses for
// links and gives an image manifest with its digest, a folder knows its only tag.
func TestAWrappedStoreKeepsItsPromises(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	reg, err := registry.NewClient(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := fresh(Options{Repository: func(_ context.Context, host, repository string) (layout.Store, error) {
		if host == "folder.io" {
			d, err := layout.CreateDir(dir)
			return struct{ layout.Store }{d}, err
		}
		repo, err := reg.Repository(host, repository)
		return struct{ layout.Store }{repo}, err
	}})
	for _, ref := range []string{r.Host + "/m:1", "folder.io/m:v7"} {
		if _, err := c.PushSource(t.Context(), sample(), "sample", ref, PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.Forget()
	out := filepath.Join(t.TempDir(), "thin.carton")
	if pulled, err := c.Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out, Thin: true}); err != nil || pulled.LinksNeedToken {
		t.Errorf("a thin pull: got %+v, %v", pulled, err)
	}
	if n := r.Count("HEAD|GET", "/v2/m/manifests/"); n != 1 {
		t.Errorf("the registry was asked for manifests %d times, want once", n)
	}
	out = filepath.Join(t.TempDir(), "m.carton")
	if pulled, err := c.Pull(t.Context(), "folder.io/m", PullOptions{Output: out}); err != nil || pulled.Reference != "folder.io/m:v7" {
		t.Errorf("without a tag: got %+v, %v", pulled, err)
	}
}

// A thin pull says whether anybody could read what its links name: it asks for one
// of them once, and shows nobody who the user is.
func TestAThinPullAsksWhoCanRead(t *testing.T) {
	users := map[string]string{"u": "p"}
	for name, tt := range map[string]struct {
		conf  registrytest.Config
		token bool
	}{
		"open":               {},
		"basic":              {conf: registrytest.Config{Auth: registrytest.Auth{Users: users}}, token: true},
		"bearer":             {conf: registrytest.Config{Auth: registrytest.Auth{Users: users, Bearer: true}}, token: true},
		"public, by token":   {conf: registrytest.Config{Auth: registrytest.Auth{Users: users, Bearer: true, AnonymousPull: true}}, token: true},
		"public, without":    {conf: registrytest.Config{Auth: registrytest.Auth{Users: users, AnonymousPull: true}}},
		"Harbor, public":     {conf: registrytest.Config{Auth: registrytest.Auth{Users: users, Bearer: true, AnonymousBlobs: true}, Quirks: registrytest.Quirks{NoHead: 401}}},
		"behind a CDN":       {conf: registrytest.Config{Quirks: registrytest.Quirks{CDN: true}}},
		"without any ranges": {conf: registrytest.Config{Quirks: registrytest.Quirks{NoRanges: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := registrytest.New(t, tt.conf)
			c := fresh(Options{Registry: registry.Options{
				Credential: auth.StaticCredential(r.Host, auth.Credential{Username: "u", Password: "p"}),
			}})
			if _, err := c.PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{}); err != nil {
				t.Fatal(err)
			}
			r.Forget()
			out := filepath.Join(t.TempDir(), "thin.carton")
			pulled, err := c.Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out, Thin: true})
			if err != nil || pulled.LinksNeedToken != tt.token {
				t.Errorf("got %+v, %v, want LinksNeedToken: %v", pulled, err, tt.token)
			}
			first := 0 // the first byte of a blob, as anybody
			for _, req := range r.Requests() {
				if req.Header.Get("Range") == "bytes=0-0" && strings.Contains(req.Path, "/blobs/") {
					first++
					if req.Header.Get("Authorization") != "" || req.Header.Get("User-Agent") != "carton-oci" {
						t.Errorf("got the header %v, want no credentials, and who asks", req.Header)
					}
				}
			}
			if first != 1 {
				t.Errorf("asked %d times, want once", first)
			}
		})
	}
}

// TestLinksDoNotLendTheUsersRights: a stranger's thin carton names a blob that
// only the user can read, in a repository that the user did not name. It is
// neither mounted nor read with the user's credentials.
func TestLinksDoNotLendTheUsersRights(t *testing.T) {
	for _, noMount := range []bool{false, true} {
		r := registrytest.New(t, registrytest.Config{
			Auth: registrytest.Auth{Users: map[string]string{"u": "correct-horse"}}, Quirks: registrytest.Quirks{NoMount: noMount},
		})
		opts := Options{AllowLinkHosts: []string{r.Host}, Registry: registry.Options{
			Credential: auth.StaticCredential(r.Host, auth.Credential{Username: "u", Password: "correct-horse"}),
		}}
		private := r.Host + "/victim/private"
		if _, err := fresh(opts).PushSource(t.Context(), sample(), "sample", private+":1", PushOptions{}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "thin.carton")
		if _, err := fresh(opts).Pull(t.Context(), private+":1", PullOptions{Output: file, Thin: true}); err != nil {
			t.Fatal(err)
		}
		r.Forget()
		_, err := fresh(opts).Push(t.Context(), file, r.Host+"/public:1", PushOptions{})
		if !errors.Is(err, carton.ErrLink) || !strings.Contains(fmt.Sprint(hint.Of(err)), "AllowLinkRepos "+private) {
			t.Errorf("got %v with %q, want ErrLink and how to allow it", err, hint.Of(err))
		}
		for _, req := range r.Requests() {
			if strings.Contains(req.Path, "/victim/") && req.Header.Get("Authorization") != "" || strings.Contains(req.Query, "victim") {
				t.Errorf("the user's rights were used: %s %s?%s", req.Method, req.Path, req.Query)
			}
		}
		opts.AllowLinkRepos = []string{private}
		if _, err := fresh(opts).Push(t.Context(), file, r.Host+"/public:1", PushOptions{}); err != nil {
			t.Errorf("allowed: %v", err)
		}
		if err := verifyFile(t, file, opts); err != nil {
			t.Errorf("allowed, and no registry in hand: %v", err)
		}
	}
}

// verifyFile reads all of a thin carton.
func verifyFile(t *testing.T, file string, opts Options) error {
	t.Helper()
	src, err := fresh(opts).Open(t.Context(), file, OpenOptions{})
	if err != nil {
		return err
	}
	defer src.Close()
	for hash := range src.Links().URLs {
		for _, m := range members(t, src) {
			if m.Hash != hash {
				continue
			}
			r, err := src.Open(t.Context(), m.Path)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
			r.Close()
		}
	}
	return nil
}

func members(t *testing.T, src carton.Source) []carton.Member {
	t.Helper()
	list, err := src.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// thin pushes a carton to r and pulls it thin.
func thin(t *testing.T, r *registrytest.Registry) string {
	t.Helper()
	if _, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/m:1", PushOptions{}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "thin.carton")
	if _, err := fresh().Pull(t.Context(), r.Host+"/m:1", PullOptions{Output: out, Thin: true}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAThinCartonIsMountedNotSent(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	file := thin(t, r)
	whole, err := fresh().PushSource(t.Context(), sample(), "sample", r.Host+"/whole:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Forget()
	result, err := fresh(Options{AllowLinkRepos: []string{r.Host + "/m"}}).Push(t.Context(), file, r.Host+"/other:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range result.Layers {
		if strings.HasPrefix(l.Paths[0], "model/") && l.Status != "mounted" {
			t.Errorf("%s: got %s, want mounted", l.Paths, l.Status)
		}
	}
	if _, out := r.Bytes("GET", "/blobs/"); out != 0 {
		t.Errorf("the registry sent %d bytes of blobs, want none", out)
	}
	if result.Digest != whole.Digest {
		t.Errorf("got %s, want the whole carton's, %s", result.Digest, whole.Digest)
	}
}

// Where blobs can't be mounted they are read from the repository that LINKS
// names, with the registry's own client.
func TestLinksIntoAnAllowedRepository(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoMount: true}})
	file := thin(t, r)
	result, err := fresh(Options{AllowLinkRepos: []string{r.Host + "/m"}}).Push(t.Context(), file, r.Host+"/other:1", PushOptions{})
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]int{}
	for _, l := range result.Layers {
		statuses[l.Status]++
	}
	if statuses["uploaded"] != len(result.Layers) {
		t.Errorf("got %v, want all uploaded", statuses)
	}
}

func TestOtherLinksNeedPermission(t *testing.T) {
	r, other := registrytest.New(t, registrytest.Config{}), registrytest.New(t, registrytest.Config{})
	file := thin(t, r)
	r.Forget()
	if _, err := fresh().Push(t.Context(), file, other.Host+"/m:1", PushOptions{}); !errors.Is(err, carton.ErrLink) {
		t.Errorf("got %v, want ErrLink", err)
	}
	full := filepath.Join(t.TempDir(), "full.carton")
	if _, err := fresh().Pull(t.Context(), file, PullOptions{Output: full}); !errors.Is(err, carton.ErrLink) || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("got %v, want ErrLink with the reason", err)
	}
	if n := len(r.Requests()); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
	allowed := Options{AllowLinkHosts: []string{r.Host}}
	if _, err := fresh(allowed).Push(t.Context(), file, other.Host+"/m:1", PushOptions{}); err != nil {
		t.Error(err)
	}
	result, err := fresh(allowed).Pull(t.Context(), file, PullOptions{Output: full})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(10_002); result.BytesDownloaded != want {
		t.Errorf("got %d bytes downloaded, want those of the three linked members, %d", result.BytesDownloaded, want)
	}
	want := filepath.Join(t.TempDir(), "want.carton")
	if err := carton.Assemble(t.Context(), want, sample(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, full, want)
}

// What LINKS says is believed when the hash was right, and not before.
func TestAWrongLinkIsFoundOut(t *testing.T) {
	r := registrytest.New(t, registrytest.Config{})
	file := thin(t, r)
	src, err := carton.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	e, ok := src.Manifest().Lookup("model/b.bin")
	if !ok {
		t.Fatal("no model/b.bin")
	}
	r.Corrupt("m", digest.NewDigestFromEncoded(digest.SHA256, e.Hash), []byte("B"))
	thin, err := fresh(Options{AllowLinkHosts: []string{r.Host}}).Open(t.Context(), file, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer thin.Close()
	member, err := thin.Open(t.Context(), "model/b.bin")
	if err == nil {
		_, err = io.Copy(io.Discard, member)
		member.Close()
	}
	if !errors.Is(err, carton.ErrChecksum) && !errors.Is(err, carton.ErrLink) {
		t.Errorf("got %v, want ErrChecksum or ErrLink", err)
	}
}

func TestThinNeedsPlacesThatLinksCanName(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "m.carton"), filepath.Join(dir, "out.carton")
	if err := carton.Assemble(t.Context(), file, sample(), carton.AssembleOptions{}); err != nil {
		t.Fatal(err)
	}
	target := inMemory()
	pushTo(t, target, "h.io/m:1", sample())
	for _, test := range []struct {
		ref, base, want string
	}{
		{file, "", "is no artifact"},
		{file, "https://h", "is no artifact"},
		{"h.io/m:1", "", "has no address that links could name"},
	} {
		o := PullOptions{Output: out, Thin: true, LinkBase: test.base}
		if _, err := fresh(within(target)).Pull(t.Context(), test.ref, o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.ref, err, test.want)
		}
	}
	o := PullOptions{Output: out, Thin: true, LinkBase: "https://h/files//"}
	if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil {
		t.Fatal(err)
	}
	src, err := carton.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for hash, urls := range src.Links().URLs {
		if want := "https://h/files/" + hash; !slices.Equal(urls, []string{want}) {
			t.Errorf("got the URLs %q, want %s", urls, want)
		}
	}
}

func TestSymlinksAndPlacesSurvive(t *testing.T) {
	target := inMemory()
	src := cartontest.New(map[string][]byte{"model/blobs/x": []byte("x")}, map[string]string{"model/l": "blobs/x"})
	pushTo(t, target, "h.io/m:1", src)
	dir := filepath.Join(t.TempDir(), "m")
	o := PullOptions{Unpack: dir}
	if _, err := fresh(within(target)).Pull(t.Context(), "h.io/m:1", o); err != nil {
		t.Fatal(err)
	}
	back, err := fresh().Open(t.Context(), dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	members, err := back.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := members[len(members)-1]; got.Path != "model/l" || got.Target != "blobs/x" {
		t.Errorf("got %+v, want the symlink", got)
	}
}
