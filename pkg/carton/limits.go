package carton

// Limits on what is read from outside. Each is far above anything seen in the
// wild and low enough that reaching it costs no harm.
const (
	// MaxMembers is the most members a carton may have. The central directory of
	// that many is about 15 MB.
	MaxMembers = 150_000
	// MaxNamesBytes is the most bytes that the paths of all members may have
	// together: eighty for each of MaxMembers.
	MaxNamesBytes = 12 << 20
	// MaxDirectoryBytes is the largest central directory of a zip: MaxMembers
	// entries with such paths and the extra fields of common writers.
	MaxDirectoryBytes = 36 << 20
	// MaxPathBytes is the longest member path, in bytes of UTF-8. Longer ones fit
	// neither a registry's annotations nor most file systems.
	MaxPathBytes = 1024
	// MaxNameBytes is the longest component of a path, in bytes: NAME_MAX of
	// every file system in use.
	MaxNameBytes = 255
	// MaxManifestBytes is the largest MANIFEST: MaxMembers hashes with such paths.
	MaxManifestBytes = 22 << 20
	// MaxInfoBytes is the largest carton.toml.
	MaxInfoBytes = 16 << 20
	// MaxIndexBytes is the largest tensor_data/index.toml.
	MaxIndexBytes = 16 << 20
	// MaxStringTensorBytes is the largest file of a string tensor that is checked.
	MaxStringTensorBytes = 16 << 20
	// MaxLinksBytes is the largest LINKS: forty thousand links. Its parser takes
	// ten times as much memory.
	MaxLinksBytes = 8 << 20
	// MaxLinkURLs is the most URLs that one hash may have in LINKS.
	MaxLinkURLs = 64
	// MaxNesting is the deepest nesting of TOML values. Deeper input exhausts the
	// stack of recursive parsers.
	MaxNesting = 100
	// MaxTOMLItems is the most keys, values and tables that carton.toml or
	// index.toml may hold, deep ones counting more. One costs a parser up to a
	// kilobyte.
	MaxTOMLItems = 250_000
	// MaxLinksItems is the same for LINKS: every member with two URLs.
	MaxLinksItems = 3*MaxMembers + 1000
	// MaxFolders is the most folders that member paths may name.
	MaxFolders = 150_000
	// MaxSymlinks is the longest chain of symlinks, as on Linux.
	MaxSymlinks = 40
	// MaxZstdWindow is the largest zstd window, in bytes, that a member may ask
	// for: what the zstd command accepts by default. A frame of 100 kB can ask
	// for half a gigabyte.
	MaxZstdWindow = 128 << 20
)
