package hub

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/hubname"
	"github.com/carton-oci/carton-oci/internal/jsonstream"
	"github.com/carton-oci/carton-oci/internal/sha256hex"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/pack"
)

const (
	maxDocument = 64 << 20 // bytes of one answer of the API
	maxFile     = 1 << 50  // bytes of a file, beyond what any hub keeps
)

// Snapshot is a repository at one commit.
type Snapshot struct {
	// Repository is its name as the hub writes it, as in "Org/Name": of one that was
	// renamed the new one. Commit is the hash that the revision stood for.
	Repository, Commit string

	client *Client
	cache  string // the repository's folder in a cache, "" for none
	files  []*file
}

// Open asks for the commit that a revision stands for, "" for the branch main, and
// for the list of its files.
func (c *Client) Open(ctx context.Context, repository, revision string) (*Snapshot, error) {
	if revision == "" {
		revision = "main"
	}
	if err := hubname.CheckRepository(repository); err != nil {
		return nil, err
	}
	if err := hubname.CheckRevision(revision); err != nil {
		return nil, err
	}
	s := &Snapshot{Repository: repository, client: c}
	if err := s.resolve(ctx, revision); err != nil {
		return nil, err
	}
	if err := s.list(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{s.Repository, repository} { // it may have been renamed since
		if dir := cachedAs(c.cache, name); c.cache != "" && s.cache == "" && isDir(dir) {
			s.cache = dir
		}
	}
	return s, nil
}

// Listing is the repository's files as what can be packed.
func (s *Snapshot) Listing() pack.Listing {
	l := pack.Listing{Repository: s.Repository, Revision: s.Commit}
	for _, f := range s.files {
		l.Files = append(l.Files, pack.Listed{Path: f.path, Size: f.size, Hash: f.hash, OpenRange: f.openRange})
	}
	return l
}

// api is an address of the API about the repository.
func (s *Snapshot) api(more ...string) *url.URL {
	return s.client.url(slices.Concat([]string{"api", "models"}, segments(s.Repository), more)...)
}

// resolve asks which commit a revision stands for.
func (s *Snapshot) resolve(ctx context.Context, revision string) error {
	body, _, err := s.client.document(ctx, s.api("revision", revision), maxDocument)
	if err != nil {
		return err
	}
	var sha, name string
	var off bool
	r := jsonstream.New(bytes.NewReader(body))
	err = r.Object(func(key string) (err error) {
		switch key {
		case "sha":
			sha, err = r.String()
		case "id":
			name, err = r.String()
		case "disabled":
			if null, err := r.Null(); null || err != nil {
				return err
			}
			off, err = r.Bool()
		default:
			err = r.Skip()
		}
		return err
	})
	if err == nil {
		err = r.End()
	}
	switch {
	case err != nil:
		return listf("of the revision: %v", err)
	case off:
		return errDisabled()
	case !hubname.IsCommit(sha):
		return listf("the revision %s is the commit %s, want 40 hex digits", errtext.Quote(revision),
			errtext.Quote(sha))
	case hubname.IsCommit(revision) && sha != revision:
		return listf("the commit %s is said to be the commit %s", revision, sha)
	}
	if s.Commit = sha; hubname.IsRepository(name) { // a mirror may not say
		s.Repository = name
	}
	return nil
}

// list asks for the list of files, page by page.
func (s *Snapshot) list(ctx context.Context) error {
	page := s.api("tree", s.Commit)
	page.RawQuery = "recursive=true&expand=false"
	all := tree{seen: map[string]bool{}}
	for {
		body, header, err := s.client.document(ctx, page, maxDocument)
		if err != nil {
			return err
		}
		before := all.entries
		if err := s.readPage(body, &all); err != nil {
			return fmt.Errorf("%w: of the files: %w", ErrList, err)
		}
		next, more := httprange.NextPage(header)
		if !more {
			break
		}
		if all.entries == before {
			return listf("a page of the files is empty, and names another")
		}
		page.RawQuery = next // of it the query alone: a mirror may name the hub that it mirrors
	}
	slices.SortFunc(s.files, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return nil
}

// tree is what is known of a list of files while it is read.
type tree struct {
	entries int // files and folders
	seen    map[string]bool
}

// readPage reads a page of the list.
func (s *Snapshot) readPage(body []byte, all *tree) error {
	r := jsonstream.New(bytes.NewReader(body))
	err := r.Array(func() error {
		if all.entries++; all.entries > 2*carton.MaxMembers || len(s.files) > carton.MaxMembers {
			return fmt.Errorf("the repository has more than %d files: %w", carton.MaxMembers, carton.ErrLimit)
		}
		f, err := s.entry(r)
		if err != nil || f == nil {
			return err
		}
		if all.seen[f.path] {
			return fmt.Errorf("the file %s is listed twice", errtext.Quote(f.path))
		}
		all.seen[f.path] = true
		s.files = append(s.files, f)
		return nil
	})
	if err != nil {
		return err
	}
	return r.End()
}

// entry reads one of the list: a file, or nil for a folder, which its files tell of.
func (s *Snapshot) entry(r *jsonstream.Reader) (*file, error) {
	f := &file{snapshot: s, size: -1, turn: make(chan struct{}, 1)}
	var kind string
	var large struct {
		there bool
		oid   string
		size  int64
	}
	err := r.Object(func(key string) (err error) {
		switch key {
		case "type":
			kind, err = r.String()
		case "path":
			f.path, err = r.String()
		case "size":
			f.size, err = r.Natural()
		case "oid":
			f.git, err = r.String()
		case "lfs":
			if null, err := r.Null(); null || err != nil {
				return err
			}
			large.there = true
			return r.Object(func(key string) (err error) {
				switch key {
				case "oid":
					large.oid, err = r.String()
				case "size":
					large.size, err = r.Natural()
				default:
					err = r.Skip()
				}
				return err
			})
		default:
			err = r.Skip()
		}
		return err
	})
	if err != nil || kind == "directory" {
		return nil, err
	}
	name := errtext.Quote(f.path)
	switch {
	case kind != "file":
		return nil, fmt.Errorf("%s is neither a file nor a folder, but %s", name, errtext.Quote(kind))
	case f.path == "" || f.size < 0 || f.size > maxFile:
		return nil, fmt.Errorf("the file %s has the size %d", name, f.size)
	case large.there && (!sha256hex.Is(large.oid) || large.size != f.size):
		return nil, fmt.Errorf("the large file %s has the sha256 %s and the sizes %d and %d", name,
			errtext.Quote(large.oid), large.size, f.size)
	case !large.there && !hubname.IsCommit(f.git):
		return nil, fmt.Errorf("the file %s has the git hash %s", name, errtext.Quote(f.git))
	}
	if f.hash = large.oid; large.there {
		f.git = ""
	}
	return f, nil
}
