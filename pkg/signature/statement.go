package signature

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/pkg/carton"
)

// The types of what is signed.
const (
	// StatementType is that of every statement that is written.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateModel is that of a model's members.
	PredicateModel = "https://model_signing/signature/v1.0"
	// PredicateImage is that of an image manifest's digest, as cosign signs it.
	PredicateImage = "https://sigstore.dev/cosign/sign/v1"
)

// ignored are names at the root of a model that tools of model signing leave out,
// besides LINKS, which is no part of what a model is. MANIFEST binds those that are
// members all the same.
var ignored = []string{".git", ".gitattributes", ".github", ".gitignore"}

// isIgnored reports whether a member is below a name that is left out.
func isIgnored(path string) bool {
	root, _, _ := strings.Cut(path, "/")
	return slices.Contains(ignored, root)
}

type (
	statementJSON[P any] struct {
		Type          string        `json:"_type"`
		Subject       []subjectJSON `json:"subject"`
		PredicateType string        `json:"predicateType"`
		Predicate     P             `json:"predicate"`
	}
	subjectJSON struct {
		Name        string            `json:"name,omitempty"`
		Digest      map[string]string `json:"digest"`
		Annotations map[string]string `json:"annotations,omitzero"`
	}
	modelJSON struct {
		Serialization serializationJSON `json:"serialization"`
		Resources     []resourceJSON    `json:"resources"`
	}
	serializationJSON struct {
		Method        string   `json:"method"`
		HashType      string   `json:"hash_type"`
		AllowSymlinks bool     `json:"allow_symlinks"`
		IgnorePaths   []string `json:"ignore_paths"`
	}
	resourceJSON struct {
		Name      string `json:"name"`
		Algorithm string `json:"algorithm"`
		Digest    string `json:"digest"`
	}
)

// NewModel states what MANIFEST says of a model. The name is for people; "" is
// "model". The statement is the same wherever the model is.
func NewModel(m *carton.Manifest, name string) ([]byte, error) {
	resources := resourcesOf(m)
	return jsonstream.Marshal(statementJSON[modelJSON]{
		Type: StatementType,
		Subject: []subjectJSON{{
			Name:   cmp.Or(name, "model"),
			Digest: map[string]string{"sha256": root(resources)},
		}},
		PredicateType: PredicateModel,
		Predicate: modelJSON{
			Serialization: serializationJSON{
				// Which members are symlinks MANIFEST doesn't tell, and who verifies says
				// whether he accepts any.
				Method: "files", HashType: "sha256", AllowSymlinks: false,
				IgnorePaths: append(slices.Clone(ignored), carton.LinksName),
			},
			Resources: resources,
		},
	}, "")
}

// NewImage states the digest, in lower-case hex sha256, of an image manifest.
func NewImage(digest string) ([]byte, error) {
	return jsonstream.Marshal(statementJSON[struct{}]{
		Type:          StatementType,
		Subject:       []subjectJSON{{Digest: map[string]string{"sha256": digest}, Annotations: map[string]string{}}},
		PredicateType: PredicateImage,
	}, "")
}

// resourcesOf lists a model's members and MANIFEST in bytewise order, without names
// that are left out.
func resourcesOf(m *carton.Manifest) []resourceJSON {
	list := []resourceJSON{{carton.ManifestName, "sha256", m.ModelHash()}}
	for _, e := range m.Entries() {
		if !isIgnored(e.Path) {
			list = append(list, resourceJSON{e.Path, "sha256", e.Hash})
		}
	}
	slices.SortFunc(list, func(a, b resourceJSON) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// root hashes the digests of resources in their order.
func root(list []resourceJSON) string {
	h := sha256.New()
	for _, r := range list {
		sum, _ := hex.DecodeString(r.Digest) // checked by whoever made the list
		h.Write(sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}
