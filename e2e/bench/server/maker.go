package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maker is a registry that keeps nothing: what was described is made when it is
// asked for, and what is uploaded is counted and forgotten.
type maker struct {
	mu        sync.Mutex
	blobs     map[string]io.ReaderAt // by digest
	sizes     map[string]int64
	manifests map[string][]byte // by repository and tag, or digest
	sessions  map[string]int64  // bytes by path
}

func newMaker() *maker {
	return &maker{
		blobs: map[string]io.ReaderAt{}, sizes: map[string]int64{},
		manifests: map[string][]byte{}, sessions: map[string]int64{},
	}
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const (
	family = "application/vnd.cnai.model."
	member = "model/weights.safetensors"
)

// describe makes an artifact of a carton with one weight, tagged 1. Without
// hashed the weight's hash is not that of its bytes, which nobody can tell who
// does not read all of them.
func (m *maker) describe(size, middle int64, hashed bool) (repository, tensorSum string, err error) {
	repository = fmt.Sprintf("made/%d", size)
	w, err := newWeight(size, middle)
	if err != nil {
		return "", "", err
	}
	if tensorSum, err = sumAll(w.middle(middle)); err != nil {
		return "", "", err
	}
	sum := sumOf(repository)
	if hashed {
		if sum, err = sumAll(io.NewSectionReader(w, 0, size)); err != nil {
			return "", "", err
		}
	}
	manifest := "carton.toml=" + sumOf(info) + "\n" + member + "=" + sum + "\n"
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := func(mediaType, path, sum string, r io.ReaderAt, size int64) descriptor {
		d := descriptor{MediaType: family + mediaType, Digest: "sha256:" + sum, Size: size}
		m.blobs[d.Digest], m.sizes[d.Digest] = r, size
		if path != "" {
			d.Annotations = map[string]string{
				"org.cnai.model.filepath": path, "org.cncf.model.filepath": path, "org.opencontainers.image.title": path,
			}
		}
		return d
	}
	text := func(mediaType, path, s string) descriptor {
		return keep(mediaType, path, sumOf(s), strings.NewReader(s), int64(len(s)))
	}
	image, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     "application/vnd.oci.image.manifest.v1+json",
		"artifactType":  family + "manifest.v1+json",
		"config":        text("config.v1+json", "", `{"modelfs":{"type":"layers","diffIds":[]}}`),
		"layers": []descriptor{
			text("weight.config.v1.raw", "MANIFEST", manifest),
			text("weight.config.v1.raw", "carton.toml", info),
			keep("weight.v1.raw", member, sum, w, size),
		},
		"annotations": map[string]string{"run.carton.mapping": "1", "run.carton.model.hash": sumOf(manifest)},
	})
	if err != nil {
		return "", "", err
	}
	m.manifests[repository+" 1"] = image
	m.manifests[repository+" sha256:"+sumOf(string(image))] = image
	return repository, tensorSum, nil
}

// ServeHTTP implements http.Handler: the parts of the distribution specification
// that a push and a pull need.
func (m *maker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	switch {
	case path == "" || path == "/v2":
		w.WriteHeader(http.StatusOK)
	case strings.Contains(path, "/blobs/uploads/"):
		m.upload(w, r)
	case strings.Contains(path, "/blobs/"):
		_, digest, _ := strings.Cut(path, "/blobs/")
		m.mu.Lock()
		blob, size := m.blobs[digest], m.sizes[digest]
		m.mu.Unlock()
		if blob == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(blob, 0, size))
	case strings.Contains(path, "/manifests/"):
		m.manifest(w, r, strings.Replace(path, "/manifests/", " ", 1))
	default:
		http.NotFound(w, r)
	}
}

func (m *maker) manifest(w http.ResponseWriter, r *http.Request, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		m.manifests[key] = body
		w.Header().Set("Docker-Content-Digest", "sha256:"+sumOf(string(body)))
		w.WriteHeader(http.StatusCreated)
		return
	}
	image, ok := m.manifests[key]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w.Header().Set("Docker-Content-Digest", "sha256:"+sumOf(string(image)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(image))
}

// upload takes a blob in one piece or in chunks. It believes the digest.
func (m *maker) upload(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.Method == http.MethodPost {
		m.mu.Lock()
		path = fmt.Sprintf("%s%d", path, len(m.sessions)+1)
		m.sessions[path] = 0
		m.mu.Unlock()
		w.Header().Set("Location", path)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	m.mu.Lock()
	m.sessions[path] += n
	have := m.sessions[path]
	m.mu.Unlock()
	if err != nil {
		return
	}
	w.Header().Set("Location", path)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, have-1)))
	switch r.Method {
	case http.MethodPut:
		digest := r.URL.Query().Get("digest")
		w.Header().Set("Docker-Content-Digest", digest)
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
