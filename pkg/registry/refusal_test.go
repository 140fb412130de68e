package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// TestRefusedManifest: what registries answer to an image manifest they don't
// take is told from what else they answer, and from the same to a blob.
func TestRefusedManifest(t *testing.T) {
	ecr := `{"errors":[{"code":"UNSUPPORTED","message":"Invalid parameter at 'ImageManifest' failed to satisfy constraint: 'Invalid JSON syntax'"}]}`
	for name, tt := range map[string]struct {
		status int
		body   string
		want   bool
	}{
		"ECR":                 {405, ecr, true},
		"Quay":                {400, `{"errors":[{"code":"MANIFEST_INVALID","message":"manifest schema mismatch"}]}`, true},
		"an unknown type":     {415, "", true},
		"400 without a word":  {400, "", true},
		"422":                 {422, "", true},
		"an impossible tag":   {400, `{"errors":[{"code":"TAG_INVALID"}]}`, false},
		"another digest":      {400, `{"errors":[{"code":"DIGEST_INVALID"}]}`, false},
		"a blob that lacks":   {404, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}`, false},
		"not allowed":         {403, "", false},
		"out of order":        {500, "", false},
		"too large a request": {413, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			reg.Break(registrytest.Fault{Methods: "PUT", Path: "/manifests/", Times: -1, Effect: registrytest.Answer(tt.status, tt.body, "Content-Type", "application/json")})
			blob := random(1, 10)
			if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
				t.Fatal(err)
			}
			desc, content := imageManifest(t, describeBytes(blob))
			err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{Tags: []string{"1"}})
			if err == nil || errors.Is(err, ErrManifest) != tt.want {
				t.Errorf("got %v, want ErrManifest: %v", err, tt.want)
			}
		})
	}
	reg := registrytest.New(t, registrytest.Config{})
	repo := dial(t, reg, "org/m", Options{})
	reg.Break(registrytest.Fault{Methods: "POST", Path: uploads, Effect: registrytest.Answer(405, ecr)})
	blob := random(1, 10)
	if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err == nil || errors.Is(err, ErrManifest) {
		t.Errorf("a blob: got %v", err)
	}
}

// TestRefusedManifestSaysWhy: the reason is shown where registries write it.
func TestRefusedManifestSaysWhy(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"distribution": {`{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":"unknown media type"}]}`, `"manifest invalid: unknown media type"`},
		"Artifactory": {
			`{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":{"description":"Circuit Breaker Threshold Reached"}}]}`,
			`"manifest invalid: Circuit Breaker Threshold Reached"`,
		},
		"other words":      {`{"errors":[{"code":"UNSUPPORTED","message":"no artifacts","detail":{"message":"of this type"}}]}`, `"unsupported: no artifacts: of this type"`},
		"details of names": {`{"errors":[{"code":"NAME_INVALID","message":"invalid name","detail":"org/m"}]}`, `"name invalid: invalid name"`},
		"a list":           {`{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":[{"description":"x"}]}]}`, `"manifest invalid"`},
		"maps in maps":     {`{"errors":[{"code":"MANIFEST_INVALID","message":"manifest invalid","detail":{"description":{},"message":{}}}]}`, `"manifest invalid"`},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrytest.New(t, registrytest.Config{})
			repo := dial(t, reg, "org/m", Options{})
			reg.Break(registrytest.Fault{Methods: "PUT", Path: "/manifests/", Times: -1, Effect: registrytest.Answer(400, tt.body, "Content-Type", "application/json")})
			blob := random(1, 10)
			if err := repo.Push(t.Context(), layer(describeBytes(blob), opener(blob)), layout.Watch{}); err != nil {
				t.Fatal(err)
			}
			desc, content := imageManifest(t, describeBytes(blob))
			err := repo.PutManifest(t.Context(), desc, content, layout.PutOptions{Tags: []string{"1"}})
			if err == nil || !strings.HasSuffix(err.Error(), "answered 400 Bad Request: "+tt.want) {
				t.Errorf("got %v, want it to end in %s", err, tt.want)
			}
		})
	}
}
