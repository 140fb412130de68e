package sourcetest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/carton/sourcetest"
)

// memory is a Source written from nothing but what the interface promises.
type memory struct {
	manifest *carton.Manifest
	members  map[string][]byte
}

func newMemory(members map[string][]byte) (*memory, error) {
	var entries []carton.Entry
	for path, b := range members {
		entries = append(entries, carton.Entry{Path: path, Hash: fmt.Sprintf("%x", sha256.Sum256(b))})
	}
	m, err := carton.NewManifest(entries)
	return &memory{m, members}, err
}

func (s *memory) Manifest() *carton.Manifest                   { return s.manifest }
func (s *memory) Links() *carton.Links                         { return nil }
func (s *memory) Sizes(context.Context, []carton.Member) error { return nil }
func (s *memory) CheckFraming(context.Context, string) error   { return nil }
func (s *memory) CRC(string) (uint32, bool)                    { return 0, false }
func (s *memory) Findings() []carton.Finding                   { return nil }
func (s *memory) Close() error                                 { return nil }
func (s *memory) Members(context.Context) ([]carton.Member, error) {
	var members []carton.Member
	for _, path := range slices.Sorted(maps.Keys(s.members)) {
		e, _ := s.manifest.Lookup(path)
		members = append(members, carton.Member{
			Path: path, Hash: e.Hash, Size: int64(len(s.members[path])), Place: carton.PlaceFile, Ranged: true,
		})
	}
	return members, nil
}

func (s *memory) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == carton.ManifestName {
		return io.NopCloser(s.manifest.NewReader()), nil
	}
	b, ok := s.members[path]
	if !ok {
		return nil, &carton.Error{Path: path, Kind: fs.ErrNotExist}
	}
	if e, _ := s.manifest.Lookup(path); e.Hash != fmt.Sprintf("%x", sha256.Sum256(b)) {
		return nil, &carton.Error{Path: path, Kind: carton.ErrChecksum}
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *memory) OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error) {
	b, ok := s.members[path]
	if path == carton.ManifestName {
		b, ok = s.manifest.Bytes(), true
	}
	if !ok {
		return nil, &carton.Error{Path: path, Kind: fs.ErrNotExist}
	}
	return carton.NewRange(path, int64(len(b)), off, n, func(off, n int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b[off : off+n])), nil
	})
}

// logged is a Source that notes what is opened. It embeds another, and so keeps all
// that this one checks.
type logged struct {
	carton.Source
	mu     sync.Mutex
	opened []string
}

func (l *logged) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	l.mu.Lock()
	l.opened = append(l.opened, path)
	l.mu.Unlock()
	return l.Source.Open(ctx, path)
}

func exampleMembers() map[string][]byte {
	return map[string][]byte{
		"carton.toml": []byte("spec_version = 1\n"), "model/weights": bytes.Repeat([]byte("w"), 100_000), "model/empty": nil,
	}
}

func TestASourceFromScratch(t *testing.T) {
	open := func() carton.Source {
		src, err := newMemory(exampleMembers())
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	broken := func() (carton.Source, string) {
		src := open().(*memory)
		src.members["model/weights"] = []byte("other")
		return src, "model/weights"
	}
	sourcetest.TestSource(t, open, sourcetest.Options{Broken: broken})
}

func TestASourceThatLogs(t *testing.T) {
	var all []*logged
	open := func() carton.Source {
		src, err := newMemory(exampleMembers())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &logged{Source: src})
		return all[len(all)-1]
	}
	sourcetest.TestSource(t, open, sourcetest.Options{})
	if !slices.ContainsFunc(all, func(l *logged) bool { return slices.Contains(l.opened, "model/weights") }) {
		t.Error("nothing was logged")
	}
}

// A Source of one's own is read, verified and written like any other.
func Example() {
	src, err := newMemory(exampleMembers())
	if err != nil {
		panic(err)
	}
	log := &logged{Source: src}
	b, err := carton.ReadMember(context.Background(), log, "carton.toml", carton.MaxInfoBytes)
	fmt.Printf("%s%v %q\n", b, err, log.opened)
	src.members["carton.toml"] = []byte("spec_version = 2\n")
	_, err = carton.ReadMember(context.Background(), log, "carton.toml", carton.MaxInfoBytes)
	fmt.Println(errors.Is(err, carton.ErrChecksum))
	// Output:
	// spec_version = 1
	// <nil> ["carton.toml"]
	// true
}
