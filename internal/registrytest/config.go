package registrytest

// Quirks are deviations that real registries have. The registry that has each
// is named in brackets.
type Quirks struct {
	// RelativeLocation names uploads by path only. [distribution, relativeurls]
	RelativeLocation bool
	// Location, where it is set, makes the Location of an upload of the right
	// one: to send it elsewhere.
	Location func(string) string
	// NoDigestHeader leaves Docker-Content-Digest out.
	NoDigestHeader bool
	// DigestHeader states this digest always.
	DigestHeader string
	// NoHead answers HEAD of a blob with this status. [Harbor: 401]
	NoHead int
	// NoManifestHead answers HEAD of a manifest with this status.
	NoManifestHead int
	// NoRanges answers a range with the whole.
	NoRanges bool
	// NoMount opens an upload instead of mounting. [any, without access]
	NoMount bool
	// MaxBody answers 413 to a larger PUT. [Quay, proxies]
	MaxBody int64
	// MaxRequest answers 413 to a larger body of any request, before it reads it.
	// [proxies]
	MaxRequest int64
	// ResetLarge resets the connection of a PUT over MaxBody or MaxRequest instead
	// of answering it. [proxies whose 413 gets lost]
	ResetLarge bool
	// NoPatch answers PATCH with this status. [Artifact Registry]
	NoPatch int
	// MinChunk is named when an upload begins, and a chunk behind a smaller one is
	// 416.
	MinChunk int64
	// PatchKeeps is how much of a chunk is kept, and said to be; 0 is all.
	PatchKeeps int64
	// NoPatchLocation, NoPatchRange leave the header out of the answer to a chunk.
	NoPatchLocation, NoPatchRange bool
	// PatchRange, where it is set, is what the Range of the answer to a chunk
	// becomes.
	PatchRange func(string) string
	// FirstRange never moves the Range of an upload once it has the first chunk.
	// [ECR]
	FirstRange bool
	// MaxPatch answers 416 to a larger PATCH. [GHCR: 4 MiB]
	MaxPatch int64
	// PatchStatus is the status of a PATCH, 0 is 202. [ECR: 201]
	PatchStatus int
	// StuckRange never moves the Range of an upload. [ECR]
	StuckRange bool
	// OneShot forgets an upload with the first request to it. [Artifact Registry]
	OneShot bool
	// QuayRange writes the Range of a status as "bytes=0-N", N one too large,
	// without a Location. [Quay]
	QuayRange bool
	// NewLocation gives an upload a new address with every request; the old one
	// is 416. [distribution: its state is in the address]
	NewLocation bool
	// NoStatus knows no GET of an upload.
	NoStatus bool
	// CDN redirects the GET of a blob to another port, with an address that is
	// good for one request and refuses Authorization. [S3]
	CDN bool
	// AnyManifest stores manifests whose blobs are not there.
	AnyManifest bool
	// ImagesOnly refuses an artifactType, and every config but an image's. [ECR
	// before 2024]
	ImagesOnly bool
	// Referrers serves the lists of referrers, and says so in OCI-Subject.
	Referrers bool
	// ReferrersLost says that manifests are listed with their subject, and lists none.
	// [GHCR, for a while]
	ReferrersLost bool
	// ReferrersPage is how many referrers a page has; 0 is all.
	ReferrersPage int
	// NoReferrersFilter leaves the filter by artifactType to who asks.
	NoReferrersFilter bool
	// TagsPage is the most tags that a page has; 0 is as many as are asked for.
	TagsPage int
	// NextLink, where it is set, makes the address of a next page of the right one.
	NextLink func(string) string
	// NoDelete answers every DELETE of a manifest or tag with this status.
	// [distribution, unless configured: 405]
	NoDelete int
	// NoTagDelete answers DELETE of a tag with this status. [distribution 2: 400]
	NoTagDelete int
	// ImageLayersOnly refuses every layer but an image's. [Quay without general OCI
	// support]
	ImageLayersOnly bool
}
