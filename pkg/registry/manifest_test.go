package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const manifests = "/manifests/"

func TestResolve(t *testing.T) {
	config := []byte("{}")
	desc, content := imageManifest(t, describeBytes(config))
	tests := map[string]struct {
		quirks    registrytest.Quirks
		reference string
		break_    *registrytest.Fault
		asks      int
	}{
		"tag":               {reference: "1", asks: 1},
		"digest":            {reference: desc.Digest.String(), asks: 1},
		"no digest header":  {quirks: registrytest.Quirks{NoDigestHeader: true}, reference: "1", asks: 2},
		"digest, no header": {quirks: registrytest.Quirks{NoDigestHeader: true}, reference: desc.Digest.String(), asks: 1},
		"no head":           {quirks: registrytest.Quirks{NoManifestHead: 405}, reference: "1", asks: 2},
		"head is refused":   {quirks: registrytest.Quirks{NoManifestHead: 401}, reference: "1", asks: 2},
		"head without size": {
			reference: "1", asks: 2,
			break_: &registrytest.Fault{Methods: "HEAD", Effect: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", desc.MediaType)
				w.Header().Set("Docker-Content-Digest", desc.Digest.String())
				w.Header().Set("Transfer-Encoding", "chunked")
			}},
		},
		"head is called text": {
			reference: "1", asks: 2,
			break_: &registrytest.Fault{Methods: "HEAD", Effect: registrytest.Answer(200, "", "Content-Type", "text/plain", "Docker-Content-Digest", desc.Digest.String(), "Content-Length", "7")},
		},
		"cut": {
			quirks: registrytest.Quirks{NoManifestHead: 405}, reference: "1", asks: 3,
			break_: &registrytest.Fault{Methods: "GET", Path: manifests, Effect: registrytest.CutOut(10)},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks})
			repo := dial(t, reg, "org/m", Options{})
			reg.AddManifest("org/m", desc.MediaType, content, "1")
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			got, err := repo.Resolve(t.Context(), tt.reference)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest != desc.Digest || got.Size != desc.Size || got.MediaType != desc.MediaType {
				t.Errorf("got %v, want %v", got, desc)
			}
			if got := reg.Count("HEAD|GET", manifests); got != tt.asks {
				t.Errorf("asked %d times, want %d", got, tt.asks)
			}
		})
	}
}

// TestResolveOthers: an index and what is badly labelled are returned as what
// they are; layout.ParseManifest is the judge.
func TestResolveOthers(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{NoManifestHead: 405}})
	repo := dial(t, reg, "org/m", Options{})
	index := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, index, "index")
	if got, err := repo.Resolve(t.Context(), "index"); err != nil || got.MediaType != ocispec.MediaTypeImageIndex {
		t.Errorf("got %v, %v", got, err)
	}
	reg.Break(registrytest.Fault{Methods: "GET", Effect: registrytest.Answer(200, string(index), "Content-Type", "application/json")})
	if got, err := repo.Resolve(t.Context(), "index"); err != nil || got.MediaType != ocispec.MediaTypeImageIndex {
		t.Errorf("labelled as JSON: got %v, %v", got, err)
	}
}

func TestResolveFails(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	big := strings.Repeat(" ", layout.MaxManifestBytes+1)
	tests := map[string]struct {
		quirks    registrytest.Quirks
		auth      registrytest.Auth
		reference string
		break_    *registrytest.Fault
		kind      error
		says      string
		hint      string
	}{
		"no such tag":    {reference: "2", kind: layout.ErrNotFound, says: "2: ", hint: ""},
		"no such digest": {reference: testDigest, kind: layout.ErrNotFound, says: "404"},
		"denied":         {reference: "1", auth: registrytest.Auth{Denied: []string{"org/m"}}, kind: ErrDenied, says: `"denied: requested`, hint: "registry.Client.Login 127.0.0.1"},
		"not logged in":  {reference: "1", auth: registrytest.Auth{Users: map[string]string{"x": "y"}}, kind: ErrUnauthorized, says: "user name and a password", hint: "registry.Client.Login 127.0.0.1"},
		"no token":       {reference: "1", auth: registrytest.Auth{Users: map[string]string{"x": "y"}, Bearer: true}, kind: ErrUnauthorized, says: "incorrect username", hint: "registry.Client.Login 127.0.0.1"},
		"wrong digest":   {reference: desc.Digest.String(), quirks: registrytest.Quirks{DigestHeader: testDigest}, kind: layout.ErrDigest, says: testDigest},
		"wrong by GET":   {reference: "1", quirks: registrytest.Quirks{DigestHeader: testDigest, NoManifestHead: 405}, kind: layout.ErrDigest, says: testDigest},
		"too large":      {reference: "1", break_: &registrytest.Fault{Methods: "HEAD", Effect: registrytest.Answer(200, "", "Content-Length", "5000000", "Content-Type", desc.MediaType)}, kind: layout.ErrLimit, says: "5000000"},
		"too large, GET": {reference: "1", quirks: registrytest.Quirks{NoManifestHead: 405}, break_: &registrytest.Fault{Methods: "GET", Path: manifests, Effect: registrytest.Answer(200, big)}, kind: layout.ErrLimit, says: "over 4194304"},
		"503 for ever":   {reference: "1", break_: &registrytest.Fault{Times: -1, Effect: registrytest.Answer(503, "")}, says: "503"},
		"no reference":   {reference: "", kind: layout.ErrNotFound, says: "tag or a digest"},
		"a path":         {reference: "../x", kind: ErrReference, says: "tag or a digest"},
		"sha512":         {reference: "sha512:" + strings.Repeat("a", 128), kind: ErrReference, says: "tag or a digest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks, Auth: tt.auth})
			opts := Options{}
			if name == "no token" {
				opts.Credential = static("u", "p")
			}
			repo := dial(t, reg, "org/m", opts)
			reg.AddManifest("org/m", desc.MediaType, content, "1")
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			_, err := repo.Resolve(t.Context(), tt.reference)
			checkError(t, err, tt.kind, tt.says, tt.hint)
		})
	}
}

func TestFetchManifest(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	other := bytes.Replace(content, []byte("schemaVersion"), []byte("schemaversion"), 1)
	tests := map[string]struct {
		break_ *registrytest.Fault
		change func(*ocispec.Descriptor)
		kind   error
		says   string
	}{
		"right":            {},
		"cut and reset":    {break_: &registrytest.Fault{Methods: "GET", Path: manifests, Times: 5, Effect: registrytest.CutOut(10)}},
		"cut for ever":     {break_: &registrytest.Fault{Methods: "GET", Path: manifests, Times: -1, Effect: registrytest.CutOut(10)}, says: "EOF"},
		"other bytes":      {break_: &registrytest.Fault{Methods: "GET", Path: manifests, Effect: registrytest.Answer(200, string(other))}, kind: layout.ErrDigest, says: "want"},
		"a web page":       {break_: &registrytest.Fault{Methods: "GET", Path: manifests, Effect: registrytest.Answer(200, "<html>", "Content-Type", "text/html")}, kind: layout.ErrDigest, says: "want"},
		"100 MiB":          {break_: &registrytest.Fault{Methods: "GET", Path: manifests, Effect: endless}, kind: layout.ErrLimit, says: "over 4194304"},
		"says 512 MiB":     {change: func(d *ocispec.Descriptor) { d.Size = 512 << 20 }, kind: layout.ErrLimit, says: "536870912"},
		"says another":     {change: func(d *ocispec.Descriptor) { d.Size++ }, kind: layout.ErrDigest, says: "bytes, want"},
		"is not there":     {change: func(d *ocispec.Descriptor) { d.Digest = testDigest }, kind: layout.ErrNotFound, says: "404"},
		"has no digest":    {change: func(d *ocispec.Descriptor) { d.Digest = "x" }, kind: layout.ErrFormat, says: `the digest "x"`},
		"has a media type": {change: func(d *ocispec.Descriptor) { d.MediaType = "application/vnd.other+json" }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			reg.AddManifest("org/m", desc.MediaType, content, "1")
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			want := desc
			if tt.change != nil {
				tt.change(&want)
			}
			got, err := repo.FetchManifest(t.Context(), want)
			if tt.says == "" {
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			checkError(t, err, tt.kind, tt.says, "")
		})
	}
}

// endless answers with more than anybody wants.
func endless(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	page := bytes.Repeat([]byte("x"), 1<<20)
	for range 100 {
		if _, err := w.Write(page); err != nil {
			return
		}
	}
}

func TestPutManifest(t *testing.T) {
	ctx := t.Context()
	config := []byte("{}")
	desc, content := imageManifest(t, describeBytes(config))
	for _, tags := range [][]string{nil, {"1"}, {"1", "latest", "v1.0"}} {
		reg := registrytest.New(t, registrytest.Config{})
		repo := dial(t, reg, "org/m", Options{})
		reg.AddBlob("org/m", config)
		if err := repo.PutManifest(ctx, desc, content, layout.PutOptions{Tags: tags}); err != nil {
			t.Fatal(err)
		}
		for _, reference := range append([]string{desc.Digest.String()}, tags...) {
			if _, got, ok := reg.Manifest("org/m", reference); !ok || !bytes.Equal(got, content) {
				t.Errorf("tags %v: %s is not there", tags, reference)
			}
		}
		want := len(tags)
		if want != 1 {
			want++
		}
		if got := reg.Count("PUT", manifests); got != want {
			t.Errorf("tags %v: got %d PUTs, want %d", tags, got, want)
		}
	}
}

func TestPutManifestRecovers(t *testing.T) {
	config := []byte("{}")
	desc, content := imageManifest(t, describeBytes(config))
	for name, effect := range map[string]registrytest.Effect{
		"503":           registrytest.Answer(503, ""),
		"a cut":         registrytest.CutIn(10),
		"a lost answer": registrytest.LoseAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Auth: registrytest.Auth{Users: map[string]string{"u": "p"}, Bearer: true}})
			repo := dial(t, reg, "org/m", Options{Credential: static("u", "p")})
			reg.AddBlob("org/m", config)
			reg.Break(registrytest.Fault{Methods: "PUT", After: 1, Times: 3, Effect: effect})
			if err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{Tags: []string{"1"}}); err != nil {
				t.Fatal(err)
			}
			if _, got, _ := reg.Manifest("org/m", "1"); !bytes.Equal(got, content) {
				t.Error("the manifest is not there")
			}
		})
	}
}

func TestPutManifestFails(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	tests := map[string]struct {
		quirks registrytest.Quirks
		desc   ocispec.Descriptor
		tags   []string
		break_ *registrytest.Fault
		kind   error
		says   string
		puts   int
	}{
		"blobs are missing":  {desc: desc, tags: []string{"1"}, kind: layout.ErrNotFound, says: "which is not here", puts: 1},
		"other bytes":        {desc: describeBytes([]byte("x")), kind: layout.ErrDigest, says: "want"},
		"no digest":          {desc: ocispec.Descriptor{Size: 1}, kind: layout.ErrFormat, says: "want"},
		"a bad tag":          {desc: desc, tags: []string{"a/b"}, kind: ErrReference, says: `"a/b"`},
		"a bad tag of two":   {desc: desc, tags: []string{"1", "a b"}, kind: ErrReference, says: `"a b"`},
		"immutable tag":      {desc: desc, tags: []string{"1"}, break_: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(400, `{"errors":[{"code":"TAG_INVALID","message":"tag 1 is immutable","detail":{"x":"`+strings.Repeat("y", 5000)+`"}}]}`)}, says: `"tag invalid: tag 1 is immutable"`, puts: 1},
		"denied":             {desc: desc, tags: []string{"1"}, break_: &registrytest.Fault{Methods: "PUT", Effect: registrytest.Answer(403, "")}, kind: ErrDenied, says: "403", puts: 1},
		"stored another one": {desc: desc, quirks: registrytest.Quirks{DigestHeader: testDigest, AnyManifest: true}, tags: []string{"1"}, kind: layout.ErrDigest, says: testDigest, puts: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{Quirks: tt.quirks})
			repo := dial(t, reg, "org/m", Options{})
			if tt.break_ != nil {
				reg.Break(*tt.break_)
			}
			err := repo.PutManifest(t.Context(), tt.desc, content, layout.PutOptions{Tags: tt.tags})
			checkError(t, err, tt.kind, tt.says, "")
			if got := reg.Count("PUT", ""); got != tt.puts {
				t.Errorf("got %d PUTs, want %d", got, tt.puts)
			}
		})
	}
}

// TestPutManifestSubject: where the registry keeps no list of referrers, the
// tag that stands for it is kept.
func TestPutManifestSubject(t *testing.T) {
	ctx := t.Context()
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	config := []byte("{}")
	reg.AddBlob("org/m", config)
	subject, content := imageManifest(t, describeBytes(config))
	if err := repo.PutManifest(ctx, subject, content, layout.PutOptions{Tags: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	// The second one replaces a list, in a registry that lets nobody delete.
	for n := range 2 {
		b, err := json.Marshal(ocispec.Manifest{
			Versioned:   specs.Versioned{SchemaVersion: 2},
			MediaType:   ocispec.MediaTypeImageManifest,
			Config:      describeBytes(config),
			Layers:      []ocispec.Descriptor{},
			Subject:     &subject,
			Annotations: map[string]string{"n": strconv.Itoa(n)},
		})
		if err != nil {
			t.Fatal(err)
		}
		desc := describeBytes(b)
		desc.MediaType = ocispec.MediaTypeImageManifest
		if err := repo.PutManifest(ctx, desc, b, layout.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		_, list, ok := reg.Manifest("org/m", strings.Replace(subject.Digest.String(), ":", "-", 1))
		if !ok || !bytes.Contains(list, []byte(desc.Digest)) {
			t.Errorf("the list of referrers is %q, want %s in it", list, desc.Digest)
		}
	}
	if n := reg.Count("DELETE", "/"); n != 0 {
		t.Errorf("%d things were deleted", n)
	}
}

// TestManifestCancelled: a cancelled request is no answer of the registry.
func TestManifestCancelled(t *testing.T) {
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	ctx, cancel := context.WithCancel(t.Context())
	reg.Break(registrytest.Fault{Methods: "HEAD", Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		cancel()
		reg.Hang(w, req, next)
	}})
	_, err := repo.Resolve(ctx, "1")
	checkError(t, err, context.Canceled, "canceled", "")
	if got := reg.Count("HEAD", ""); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

// Something before the registry answers to a manifest in its place.
func TestAManifestThatNobodyStored(t *testing.T) {
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	for _, status := range []int{200, 201, 202, 204} {
		reg := registrytest.New(t, registrytest.Config{Quirks: registrytest.Quirks{AnyManifest: true}})
		repo := dial(t, reg, "org/m", Options{})
		reg.Break(registrytest.Fault{Methods: "PUT", Path: manifests, Effect: registrytest.Answer(status, "")})
		err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{Tags: []string{"1"}})
		if !errors.Is(err, layout.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprintf("answered %d to it, and does not show it", status)) {
			t.Errorf("got %v, want that %d is not believed", err, status)
		}
		reg.AddManifest("org/m", desc.MediaType, bytes.Replace(content, []byte("{"), []byte(" {"), 1), "1")
		reg.Mend()
		reg.Break(registrytest.Fault{Methods: "PUT", Path: manifests, Effect: registrytest.Answer(status, "")})
		want := map[bool]error{true: layout.ErrNotFound, false: layout.ErrDigest}[status == 201]
		err = repo.PutManifest(t.Context(), desc, content, layout.PutOptions{Tags: []string{"1"}})
		if !errors.Is(err, want) {
			t.Errorf("a tag of another: got %v, want %v", err, want)
		}
	}
}
