package registry

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/opencontainers/go-digest"
)

const (
	// maxStateBytes is the largest state that is read.
	maxStateBytes = 16 << 10
	// maxStateAge is how long an upload is remembered. Registries forget them too:
	// distribution after a week.
	// https://github.com/distribution/distribution/blob/v3.1.2/docs/content/about/configuration.md#uploadpurging
	maxStateAge = 7 * 24 * time.Hour
	// minStateSize is the smallest blob whose upload is remembered: most of a
	// smaller one is on its way before anything can go wrong.
	minStateSize = 4 << 20

	stateVersion = 1
)

// state is what is remembered of an upload. It holds no credentials; but whoever
// has the address may, at some registries, write to the upload.
type state struct {
	Version    int           `json:"version"`
	Registry   string        `json:"registry"` // as Repository.Name has it
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Size       int64         `json:"size"`
	Location   string        `json:"location"`
	MinChunk   int64         `json:"minChunk,omitempty"`
	Time       time.Time     `json:"time"` // of the last answer that named the address
	// Hashes are states of the hash of what was sent, by which a later run need not
	// read it again. They are believed only where they lead to Digest.
	Hashes []savedHash `json:"hashes,omitempty"`
}

// savedHash is the state of the hash of a blob's first bytes.
type savedHash struct {
	Offset int64  `json:"offset"`
	State  []byte `json:"state"`
}

// maxSaved is how many states are remembered, and maxHashBytes the size of one.
const (
	maxSaved     = 16
	maxHashBytes = 256
)

// encode returns the bytes that decodeState reads.
func (s state) encode() []byte {
	s.Version, s.Time = stateVersion, s.Time.UTC().Truncate(time.Second)
	b, err := json.Marshal(s)
	if err != nil || len(b) > maxStateBytes {
		return nil
	}
	return b
}

// decodeState reads a state, false for whatever encode has not written: what is
// left out, added, said twice or said otherwise. White space may follow.
func decodeState(b []byte) (state, bool) {
	var s state
	b = bytes.TrimRight(b, " ")
	if len(b) > maxStateBytes || json.Unmarshal(b, &s) != nil || !bytes.Equal(s.encode(), b) {
		return state{}, false
	}
	u, err := url.Parse(s.Location)
	switch {
	case err != nil, u.Host == "", u.User != nil, u.Fragment != "", strings.ContainsFunc(s.Location, unprintable):
		return state{}, false
	case layout.CheckDigest(s.Digest) != nil, s.Size < minStateSize, s.MinChunk < 0:
		return state{}, false
	}
	if len(s.Hashes) > maxSaved {
		return state{}, false
	}
	last := int64(0)
	for _, h := range s.Hashes {
		if h.Offset <= last || h.Offset > s.Size || len(h.State) > maxHashBytes {
			return state{}, false
		}
		last = h.Offset
	}
	return s, true
}

func unprintable(r rune) bool { return r <= ' ' || r >= 0x7f }

// fits reports whether a state is of the upload that other describes, and not
// too old.
func (s state) fits(other state, now time.Time) bool {
	age := now.Sub(s.Time)
	return s.inRepository() && s.Registry == other.Registry && s.Repository == other.Repository &&
		s.Digest == other.Digest &&
		s.Size == other.Size && age > -maxStateAge && age < maxStateAge
}

// inRepository reports whether the address is one of the repository's uploads.
// Registries may choose any; but of one that was read from a file nobody knows
// whether the registry chose it, and bytes and credentials that go to it would go
// to another repository, and what cancels an upload could delete something else.
func (s state) inRepository() bool {
	u, err := url.Parse(s.Location)
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(u.Path, "/v2/"+s.Repository+"/blobs/upload") // GHCR leaves out the s
	return ok && strings.Contains(rest, "/") && path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/")
}
