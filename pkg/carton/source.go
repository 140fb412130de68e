package carton

import (
	"context"
	"io"
)

// Names of the files with a meaning of their own.
const (
	InfoName     = "carton.toml"
	ManifestName = "MANIFEST"
	LinksName    = "LINKS"
	IndexName    = "tensor_data/index.toml"
)

// Source is a carton wherever it is kept: a zip, a folder, a registry, a URL.
// Every command works on one. Implementations are safe for concurrent use.
//
// All that a source can be asked is a method here, and nothing is found out by
// asking what else it can do: so a source that wraps another, to follow its
// links or to count, keeps every check of it. Package sourcetest tests all that is
// promised here.
type Source interface {
	// Manifest returns MANIFEST: its verbatim bytes and what they list.
	Manifest() *Manifest
	// Links returns LINKS, nil where the carton has none.
	Links() *Links
	// Members returns a member for every entry of MANIFEST, in bytewise order of
	// paths. It may cost requests, but none to the hosts of links: the size of a
	// linked member is -1 until somebody asks for it. The slice is the caller's.
	Members(ctx context.Context) ([]Member, error)
	// Sizes asks for the sizes of those among members that have none (-1), and
	// sets Size and Ranged where there is an answer. It costs a request or two for
	// each, so that nobody asks for more than is needed.
	Sizes(ctx context.Context, members []Member) error
	// Open opens a member's content, through symlinks. MANIFEST opens too. The
	// reader returns io.EOF only if the whole content had the hash that MANIFEST
	// lists, else an error wrapping ErrChecksum. A path that is not listed is
	// fs.ErrNotExist; a linked member of a source that resolves no links is
	// ErrLink.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// OpenRange opens n bytes of a member's content from offset off; n < 0 means
	// to the end. What it returns is NOT verified against MANIFEST. A range that
	// begins or ends past the content ends early with io.ErrUnexpectedEOF.
	OpenRange(ctx context.Context, path string, off, n int64) (io.ReadCloser, error)
	// CheckFraming compares the bytes around a member, of a source whose members
	// lie inside something that has bytes besides theirs, with what they must be.
	// Who reads a Ranged member by ranges alone calls it once, for what Open would
	// check before and behind the content.
	CheckFraming(ctx context.Context, path string) error
	// CRC returns the CRC-32 (IEEE) that the source itself has for a member's
	// content, as a zip does; ok is false where it has none. Open checks it; who
	// reads by ranges compares it.
	CRC(path string) (crc uint32, ok bool)
	// Findings returns what is odd about the form that the carton is in, and makes
	// it no other carton: warnings of [Check].
	Findings() []Finding
	// Close releases what the source holds open. Readers it gave out end.
	io.Closer
}

// Member is one file of a carton.
type Member struct {
	// Path is the member's name, slash-separated, relative to the carton's root.
	Path string
	// Target is a symlink's relative, cleaned target as seen from the symlink's
	// folder ("../blobs/ab"); "" for a regular file.
	Target string
	// Hash is the content's sha256 in lower-case hex, from MANIFEST. A symlink's
	// is its final target's.
	Hash string
	// Size is the content's size in bytes, of a symlink its final target's;
	// -1 where it is not known yet.
	Size int64
	// Bundle is non-zero for members that lie in one stream (a tar layer):
	// members of one bundle are read fastest one after another, in the order of
	// Members. It numbers the stream, and means nothing else.
	Bundle int
	// Place says where the bytes are.
	Place Place
	// Ranged says that reading a range of the content costs that range and little
	// more: the bytes lie somewhere as they are. Of other members a range costs
	// whatever lies before it as well.
	Ranged bool
}

// Place says where a member's bytes are.
type Place uint8

// The places a member can be in.
const (
	// PlaceStored: in the zip as they are.
	PlaceStored Place = iota
	// PlaceCompressed: in the zip, deflated or as one zstd frame.
	PlaceCompressed
	// PlaceFile: a file of a folder.
	PlaceFile
	// PlaceBlob: a raw layer of an artifact.
	PlaceBlob
	// PlaceBundled: inside a tar layer of an artifact.
	PlaceBundled
	// PlaceLinked: elsewhere; LINKS says where.
	PlaceLinked
)

// String returns the place in one lower-case word.
func (p Place) String() string {
	switch p {
	case PlaceStored:
		return "stored"
	case PlaceCompressed:
		return "compressed"
	case PlaceFile:
		return "file"
	case PlaceBlob:
		return "blob"
	case PlaceBundled:
		return "bundled"
	case PlaceLinked:
		return "linked"
	}
	return "unknown"
}
