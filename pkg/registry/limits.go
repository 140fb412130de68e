package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
)

// behaviour is what is known of a hosted registry and can't be learnt by asking.
// What is 0 or false is not known, or as everywhere.
type behaviour struct {
	name  string   // for people
	hosts []string // the host, or where it begins with a dot, the end of it

	layer    int64         // most bytes in a layer
	layers   int           // most layers
	upload   time.Duration // longest that one upload may take
	maxPut   int64         // most bytes in one PUT: larger blobs go in chunks
	maxChunk int64         // most bytes in a chunk; noChunks: it takes none

	rangeNeverAdvances bool // the Range of an upload does not tell what has arrived
	singleUseURL       bool // an upload's address is good for one request

	sources []string // of the figures, one by one
}

const (
	noChunks = -1

	gb  = 1_000_000_000
	mib = 1 << 20
	gib = 1 << 30
)

// behaviours are the registries that are known, in the order of their names.
// Harbor is not among them: it runs under any name ([endpoint.explain] has what
// it does to large layers).
var behaviours = []behaviour{
	{
		name: "Amazon ECR", hosts: []string{".amazonaws.com", ".amazonaws.com.cn"},
		layer: 52_000 * mib, layers: 500, rangeNeverAdvances: true,
		sources: []string{
			`52,000 MiB: docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html, "Maximum layer size"`,
			"500 layers: an old cap, kept because no artifact of ours needs more",
			"a Range that stays at the end of the first chunk: github.com/aws/containers-roadmap/issues/2831 (2026-06)",
		},
	},
	{
		name: "Amazon ECR Public", hosts: []string{"public.ecr.aws"},
		layer: 10_000 * mib, rangeNeverAdvances: true,
		sources: []string{
			`10,000 MiB: docs.aws.amazon.com/AmazonECR/latest/public/public-service-quotas.html, "Maximum layer size"`,
			"the Range: as with Amazon ECR",
		},
	},
	{
		name: "Azure Container Registry", hosts: []string{".azurecr.io", ".azurecr.cn", ".azurecr.us"},
		layer: 200 * gib,
		sources: []string{
			`200 GiB: learn.microsoft.com/azure/container-registry/container-registry-skus, "Maximum image layer size"`,
			"413 to large PUTs, of some: github.com/goharbor/harbor/issues/23015 (2026-03); not before it happens, " +
				"for others take them",
		},
	},
	{
		name: "Docker Hub", hosts: []string{"registry-1.docker.io"},
		sources: []string{
			"docs.docker.com/docker-hub/usage: limits count image manifests that are pulled; none is named for layers",
		},
	},
	{
		name: "GitHub Container Registry", hosts: []string{"ghcr.io"},
		layer: 10 * gb, upload: 10 * time.Minute, maxChunk: 4 * mib,
		sources: []string{
			"10 GB a layer, 10 minutes an upload: " +
				"docs.github.com/packages/working-with-a-github-packages-registry/working-with-the-container-registry#troubleshooting",
			"416 to a PATCH over 4 MiB: github.com/wasmCloud/wash-archive/issues/268 (2022-05), " +
				"github.com/ocx-sh/ocx/pull/237 (2026-07)",
		},
	},
	{
		name: "Google Artifact Registry", hosts: []string{".pkg.dev"},
		maxChunk: noChunks, singleUseURL: true,
		sources: []string{
			`cloud.google.com/artifact-registry/docs/reference/docker-api, "does not support Docker chunked uploads" (2023-01)`,
		},
	},
	{
		name: "Google Container Registry", hosts: []string{"gcr.io", ".gcr.io"},
		maxChunk: noChunks, singleUseURL: true,
		sources: []string{
			"served by Artifact Registry: cloud.google.com/artifact-registry/docs/transition/transition-from-gcr " +
				"(2025-03)",
		},
	},
	{
		name: "Quay", hosts: []string{"quay.io"},
		maxPut: 20 * gb,
		sources: []string{
			"no PUT over 20 GB: github.com/oras-project/oras-py/pull/137 (2024-06), of quay.io's operators",
		},
	},
}

// behaviourOf returns what is known of a host, with the port where there is one.
func behaviourOf(host string) behaviour {
	host = strings.TrimSuffix(host, ":443") // which is the same registry
	for _, b := range behaviours {
		for _, h := range b.hosts {
			if host == h || h[0] == '.' && strings.HasSuffix(host, h) {
				return b
			}
		}
	}
	return behaviour{}
}

// resumes reports whether an upload that broke off can go on.
func (b *behaviour) resumes() bool { return !b.rangeNeverAdvances && !b.singleUseURL }

// CheckArtifact refuses an artifact that the registry is known not to take: a
// layer that is too large, too many layers, an image manifest over
// layout.MaxManifestBytes. It sends nothing. Its one error wraps
// [ErrTooLarge] and names the first layer that is at fault.
func (r *Repository) CheckArtifact(_ context.Context, a *layout.Artifact) error {
	b := &r.host.behaviour
	if len(a.Manifest) > layout.MaxManifestBytes {
		return hint.With(limitError("image manifest", "got %d bytes, want at most %d", len(a.Manifest),
			layout.MaxManifestBytes),
			"larger bundles make fewer layers: %s SIZE", hint.BundleBelow)
	}
	if n := len(a.Layers); b.layers > 0 && n > b.layers {
		return hint.With(limitError("image manifest", "got %d layers, want at most %d (%s)", n, b.layers, b.name),
			"larger bundles make fewer layers: %s SIZE", hint.BundleBelow)
	}
	var first *layout.Layer
	more := 0
	for i := range a.Layers {
		switch l := &a.Layers[i]; {
		case b.layer == 0 || l.Size <= b.layer:
		case first == nil:
			first = l
		default:
			more++
		}
	}
	if first == nil {
		return nil
	}
	name := cmp.Or(first.Name, first.Digest.String())
	var err error = limitError(name, "got %d bytes, want at most %d (%s) in a layer (%s)", first.Size, b.layer,
		errtext.Size(b.layer), b.name)
	if more > 0 {
		err = hint.With(err, "%d more layers are too large", more)
	}
	return hintToShard(err)
}

// hintToShard says how files become smaller than a registry's limit.
func hintToShard(err error) error {
	return hint.With(err, "%s SIZE cuts safetensors and GGUF files into smaller ones when a folder is packed or "+
		"pushed; or use another registry", hint.Shard)
}

func limitError(object, format string, args ...any) *layout.Error {
	return &layout.Error{Object: object, Kind: ErrTooLarge, Msg: fmt.Sprintf(format, args...)}
}

// explain adds to the failure of an upload what the registry is known for.
func (h *endpoint) explain(f *fault, size int64) error {
	b := &h.behaviour
	switch {
	case f.source || f.status >= 400 && f.status < 500 && f.status != http.StatusRequestEntityTooLarge:
		return f.err
	case b.upload > 0 && f.took >= b.upload-b.upload/leastMeasure:
		return hint.With(f.err, "%s ends an upload after %s; this one had been under way for %s", hint.Text(b.name),
			b.upload, roughly(f.took.Seconds()))
	case b.name == "" && size > 32*gib:
		// github.com/goharbor/harbor/issues/19573 (2023-11): mended in 2.9.2 and 2.10.0.
		return hint.With(f.err, "Harbor before 2.9.2 takes no layer over 32 GiB, and this one has %s",
			hint.Text(errtext.Size(size)))
	}
	return f.err
}
