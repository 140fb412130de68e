package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

const typeOne = "application/vnd.example.one"

// referrer is a manifest that names a subject.
func referrer(t testing.TB, subject ocispec.Descriptor, artifactType string, n int) (ocispec.Descriptor, []byte) {
	t.Helper()
	b, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
		Config: describeBytes([]byte("{}")), Layers: []ocispec.Descriptor{}, Subject: &subject,
		Annotations: map[string]string{"n": fmt.Sprint(n)},
	})
	if err != nil {
		t.Fatal(err)
	}
	desc := describeBytes(b)
	desc.MediaType, desc.ArtifactType = ocispec.MediaTypeImageManifest, artifactType
	return desc, b
}

// withSubject is a registry with a manifest that others are to name.
func withSubject(t testing.TB, quirks registrytest.Quirks) (*registrytest.Registry, ocispec.Descriptor) {
	t.Helper()
	reg := registrytest.New(t, registrytest.Config{Quirks: quirks})
	reg.AddBlob("org/m", []byte("{}"))
	desc, content := imageManifest(t, describeBytes([]byte("{}")))
	return reg, reg.AddManifest("org/m", desc.MediaType, content, "1")
}

// The index that clients keep is written where the registry lists nothing, whatever it
// says, and not where it does. Registries that delete nothing take any number.
func TestWhoListsReferrers(t *testing.T) {
	for name, c := range map[string]struct {
		quirks registrytest.Quirks
		index  bool
	}{
		"no list":                       {registrytest.Quirks{NoDelete: 405}, true},
		"a list":                        {registrytest.Quirks{Referrers: true}, false},
		"pages of one":                  {registrytest.Quirks{Referrers: true, ReferrersPage: 1}, false},
		"a list that is always empty":   {registrytest.Quirks{ReferrersLost: true, NoDelete: 405}, true},
		"nothing filtered by the other": {registrytest.Quirks{Referrers: true, NoReferrersFilter: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			reg, subject := withSubject(t, c.quirks)
			repo := dial(t, reg, "org/m", Options{})
			for i := range 3 {
				desc, content := referrer(t, subject, []string{typeOne, "application/vnd.example.two"}[i%2], i)
				if err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, there := reg.Manifest("org/m", layout.ReferrersTag(subject.Digest)); there != c.index {
				t.Errorf("an index of referrers: got %v, want %v", there, c.index)
			}
			for artifactType, want := range map[string]int{"": 3, typeOne: 2, "application/vnd.example.none": 0} {
				got, err := repo.Referrers(t.Context(), subject, artifactType)
				if err != nil || len(got) != want {
					t.Errorf("%q: got %d referrers, %v, want %d", artifactType, len(got), err, want)
				}
				for _, desc := range got {
					if desc.ArtifactType == "" || desc.Annotations["n"] == "" {
						t.Errorf("got %+v, want its type and annotations", desc)
					}
				}
			}
			if n := reg.Count("DELETE", "/"); n != 0 {
				t.Errorf("%d things were deleted", n)
			}
		})
	}
}

// Writers that know nothing of each other lose nothing of each other.
func TestManyWritersOfOneIndex(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{NoDelete: 405})
	const writers, each = 4, 5
	var group sync.WaitGroup
	for w := range writers {
		repo := dial(t, reg, "org/m", Options{})
		group.Go(func() {
			for i := range each {
				desc, content := referrer(t, subject, typeOne, 100*w+i)
				if err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got, err := dial(t, reg, "org/m", Options{}).Referrers(t.Context(), subject, typeOne)
	if len(got) != writers*each || err != nil {
		t.Errorf("got %d referrers, %v, want %d", len(got), err, writers*each)
	}
}

// Somebody who has read the index writes it after us, without what we wrote.
func TestAWriterThatOverwrites(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{})
	tag := layout.ReferrersTag(subject.Digest)
	theirs, _ := referrer(t, subject, typeOne, 1)
	stale, _, err := layout.AddReferrers(nil, theirs)
	if err != nil {
		t.Fatal(err)
	}
	var puts atomic.Int64
	reg.Break(registrytest.Fault{Methods: "PUT", Path: tag, Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(w, req)
		if puts.Add(1) <= 2 {
			reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, stale, tag)
		}
	}})
	desc, content := referrer(t, subject, typeOne, 2)
	if err := dial(t, reg, "org/m", Options{}).PutManifest(t.Context(), desc, content, layout.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	_, index, _ := reg.Manifest("org/m", tag)
	for _, want := range []digest.Digest{desc.Digest, theirs.Digest} {
		if !strings.Contains(string(index), want.String()) {
			t.Errorf("got the index %s, want %s in it", index, want)
		}
	}
	reg.Break(registrytest.Fault{Methods: "PUT", Path: tag, Times: -1, Effect: func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(w, req)
	}})
}

// An entry that another client wrote without type and annotations is completed; what
// else its entries say stays.
func TestEntriesOfOthers(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{})
	tag := layout.ReferrersTag(subject.Digest)
	desc, content := referrer(t, subject, typeOne, 1)
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[`+
		`{"mediaType":%q,"digest":%q,"size":%d,"artifactType":"application/vnd.oci.empty.v1+json"},`+
		`{"mediaType":"application/vnd.example","digest":%q,"size":3,"org.example.other":[1]}]}`,
		ocispec.MediaTypeImageIndex, desc.MediaType, desc.Digest, desc.Size, testDigest)
	reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, []byte(index), tag)
	reg.AddManifest("org/m", desc.MediaType, content)
	repo := dial(t, reg, "org/m", Options{})
	if got, err := repo.Referrers(t.Context(), subject, typeOne); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v: an entry that says nothing of its type may be of any", got, err)
	}
	found, left, err := layout.ReadReferrers(t.Context(), repo, subject, typeOne)
	if err != nil || len(found) != 1 || len(left) != 1 {
		t.Errorf("got %v, %v, %v, want one and one that isn't there", found, left, err)
	}
	if err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	_, now, _ := reg.Manifest("org/m", tag)
	for _, want := range []string{`"artifactType":"` + typeOne + `"`, `"n":"1"`, `"org.example.other":[1]`} {
		if !strings.Contains(string(now), want) {
			t.Errorf("got the index %s, want %s in it", now, want)
		}
	}
}

// What names a subject leaves the index with it.
func TestDeleteOfAReferrer(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{})
	repo := dial(t, reg, "org/m", Options{})
	var all []ocispec.Descriptor
	for i := range 2 {
		desc, content := referrer(t, subject, typeOne, i)
		if err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		all = append(all, desc)
	}
	if err := repo.Delete(t.Context(), all[0].Digest.String(), layout.DeleteOptions{KeepTagged: true}); err != nil {
		t.Fatal(err)
	}
	got, err := repo.Referrers(t.Context(), subject, "")
	if err != nil || len(got) != 1 || got[0].Digest != all[1].Digest {
		t.Errorf("got %v, %v, want the other one", got, err)
	}
}

// A registry lies: about subjects, types and what there is.
func TestListsThatLie(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{})
	other, otherContent := imageManifest(t, describeBytes([]byte("{}")), describeBytes([]byte("x")))
	reg.AddManifest("org/m", other.MediaType, otherContent)
	good, content := referrer(t, subject, typeOne, 1)
	reg.AddManifest("org/m", good.MediaType, content)
	ofAnother, content := referrer(t, other, typeOne, 2)
	reg.AddManifest("org/m", ofAnother.MediaType, content)
	twoType, content := referrer(t, subject, "application/vnd.example.two", 3)
	reg.AddManifest("org/m", twoType.MediaType, content)
	missing, _ := referrer(t, subject, typeOne, 4)
	liesOfType := twoType
	liesOfType.ArtifactType = typeOne
	huge := good
	huge.Digest, huge.Size = digest.FromString("huge"), 1<<40
	list := []ocispec.Descriptor{
		good, good, ofAnother, liesOfType, missing, other, huge,
		{MediaType: "x", Digest: "md5:1", Size: 1},
		{Digest: testDigest},
		{MediaType: "a/b", Digest: testDigest, Size: -1},
	}
	b, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": list})
	if err != nil {
		t.Fatal(err)
	}
	for name, quirk := range map[string]func(){
		"the registry's list": func() {
			reg.Break(registrytest.Fault{Path: "/referrers/", Times: -1, Effect: registrytest.Answer(200, string(b), "Content-Type", ocispec.MediaTypeImageIndex)})
		},
		"the index of clients": func() {
			reg.Mend()
			reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, b, layout.ReferrersTag(subject.Digest))
		},
	} {
		quirk()
		found, left, err := layout.ReadReferrers(t.Context(), dial(t, reg, "org/m", Options{}), subject, typeOne)
		if err != nil || len(found) != 1 || found[0].Digest != good.Digest {
			t.Errorf("%s: got %v, %v, want one", name, found, err)
		}
		text := fmt.Sprint(left)
		for _, want := range []string{"does not name it", "404", "md5:1", "1099511627776"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: got left %s, want %s in it", name, text, want)
			}
		}
	}
}

func TestReferrersFail(t *testing.T) {
	maxPages = 50
	t.Cleanup(func() { maxPages = 10_000 })
	turn := atomic.Int64{}
	endless := func(string) string { return fmt.Sprint("?x=", turn.Add(1)) }
	many := `{"schemaVersion":2,"manifests":[` + strings.Repeat(`{"mediaType":"a/b","digest":"sha256:x","size":1},`, 10) + `{}]}`
	for name, c := range map[string]struct {
		quirks registrytest.Quirks
		path   string // that answers otherwise
		answer string
		status int
		typ    string
		kind   error // nil: there are none
		says   string
	}{
		"a web page":                 {path: "/referrers/", answer: "<html>", typ: "text/html"},
		"501":                        {path: "/referrers/", status: 501},
		"401 and no index":           {path: "/referrers/", status: 401, kind: ErrUnauthorized, says: "401"},
		"503 for ever":               {path: "/referrers/", status: 503, says: "503"},
		"no index":                   {path: "/referrers/", answer: `{"schemaVersion":2}`, kind: layout.ErrFormat, says: "has no manifests"},
		"keys twice":                 {path: "/referrers/", answer: `{"schemaVersion":2,"manifests":[],"manifests":[]}`, kind: layout.ErrFormat, says: "twice"},
		"an index that is an image":  {path: "/manifests/", answer: `{"schemaVersion":2,"layers":[],"mediaType":"application/vnd.oci.image.manifest.v1+json"}`, kind: layout.ErrFormat, says: "has no manifests, or layers"},
		"an index that is broken":    {path: "/manifests/", answer: `{"schemaVersion":2,"manifests":`, kind: layout.ErrFormat, says: "tag sha256-"},
		"pages without end":          {quirks: registrytest.Quirks{Referrers: true, ReferrersPage: 1, NextLink: endless}, kind: layout.ErrLimit, says: "more than 50 pages"},
		"junk, which is listed once": {path: "/referrers/", answer: many},
	} {
		t.Run(name, func(t *testing.T) {
			reg, subject := withSubject(t, c.quirks)
			for i := range 2 {
				desc, content := referrer(t, subject, typeOne, i)
				if c.quirks.Referrers {
					reg.AddManifest("org/m", desc.MediaType, content)
				}
			}
			if c.path != "" {
				typ := c.typ
				if typ == "" {
					typ = ocispec.MediaTypeImageIndex
				}
				reg.Break(registrytest.Fault{Path: c.path, Times: -1, Effect: registrytest.Answer(max(c.status, 200), c.answer, "Content-Type", typ)})
			}
			found, err := dial(t, reg, "org/m", Options{}).Referrers(t.Context(), subject, "")
			if c.says == "" {
				if err != nil || len(found) > 2 {
					t.Errorf("got %v, %v", found, err)
				}
				return
			}
			checkError(t, err, c.kind, c.says, "")
		})
	}
}

// What a tag points to that is no index is nobody's to replace.
func TestAReferrersTagThatIsNone(t *testing.T) {
	reg, subject := withSubject(t, registrytest.Quirks{})
	tag := layout.ReferrersTag(subject.Digest)
	model, content := imageManifest(t, describeBytes([]byte("{}")), describeBytes([]byte("x")))
	reg.AddManifest("org/m", model.MediaType, content, tag)
	desc, content := referrer(t, subject, typeOne, 1)
	err := dial(t, reg, "org/m", Options{}).PutManifest(t.Context(), desc, content, layout.PutOptions{})
	checkError(t, err, layout.ErrFormat, "want an index of referrers", "")
	if dgst, _, _ := reg.Manifest("org/m", tag); dgst != model.Digest {
		t.Error("it was replaced")
	}
}

// A thousand, by the registry and by the index.
func TestAThousandReferrers(t *testing.T) {
	for name, quirks := range map[string]registrytest.Quirks{"a list": {Referrers: true, ReferrersPage: 100}, "an index": {}} {
		reg, subject := withSubject(t, quirks)
		var all []ocispec.Descriptor
		for i := range 1000 {
			desc, content := referrer(t, subject, typeOne, i)
			desc.Annotations = map[string]string{"n": fmt.Sprint(i)}
			reg.AddManifest("org/m", desc.MediaType, content)
			all = append(all, desc)
		}
		if !quirks.Referrers {
			index, _, err := layout.AddReferrers(nil, all...)
			if err != nil {
				t.Fatal(err)
			}
			reg.AddManifest("org/m", ocispec.MediaTypeImageIndex, index, layout.ReferrersTag(subject.Digest))
		}
		found, left, err := layout.ReadReferrers(t.Context(), dial(t, reg, "org/m", Options{}), subject, typeOne)
		if len(found) != 1000 || len(left) != 0 || err != nil {
			t.Errorf("%s: got %d, %d left, %v", name, len(found), len(left), err)
		}
	}
}
