// Package layout is OCI content: layers and how their bytes are made, image
// manifests and how they are read and written, and the places that keep them.
// It knows nothing of cartons and nothing of HTTP.
//
// # Rules that this package keeps
//
// A layer is a recipe, not a file. [Layer] is a descriptor and a way to open
// its bytes again, from any offset, as often as a transfer needs.
//
// Bytes that reach a digest are a pure function of what they hold. Tar layers
// ([TarPlan]) have sorted entries, explicit folder entries, modes 0644 and 0755,
// uid and gid 0, no user names, the modification time 1980-01-01T00:00:00Z, a
// PAX record only where a name or a size forces it, and end with exactly two
// zero blocks. Compressed ones ([Compress]) come from one thread at one level.
// Image manifests ([NewArtifact]) are JSON with the fields in the order of the
// specification, map keys sorted, and no white space.
//
// Nothing foreign is guessed at. [ParseManifest] refuses duplicate or
// differently cased keys, trailing data, manifests and layers side by side, and
// digests other than sha256 in lower case. [TarReader] refuses everything but
// files, folders and symlinks, and data behind the end; [Decompress] everything
// but one gzip member or one zstd frame.
//
// A digest is checked where bytes arrive. [OpenBlob] returns io.EOF only when
// size and digest were right; [Store] implementations complete no upload and
// give no file its final name before that.
//
// An archive is read as it lies ([Archive]): one pass over the headers of a tar, which
// may hold the files of an image layout, each once, and nothing else. One that is
// written ([ArchiveWriter]) is planned before its first byte, is a pure function of what
// it holds, and has no name and no headers until all of it is there and verified.
//
// The image manifest goes last ([Push]): what a tag points to is always complete,
// and what a layer's source has to say against its content (Layer.Vouch) was heard.
//
// Specifications:
//   - https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md
//   - https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
package layout
