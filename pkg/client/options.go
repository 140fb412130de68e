package client

import (
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"oras.land/oras-go/v2"
)

// Options say how places are reached. The zero value reaches registries over
// TLS with the credentials that Docker keeps, and links of public hosts.
type Options struct {
	// Registry says how registries are reached: the HTTP client, TLS, retries.
	// Where its Credential is nil, credentials come from RegistryConfig.
	Registry registry.Options
	// RegistryConfig is a Docker config.json with credentials; "" looks where
	// Docker, and then Podman, keep theirs.
	RegistryConfig string
	// Target takes the place of a registry: an oras.Target, in memory or wherever.
	// The reference of [Push] and [Pull] is then a tag or digest in it.
	Target oras.Target
	// AllowLinkHosts are hosts, as HOST or HOST:PORT, that LINKS may name although
	// they are not public or speak no TLS.
	AllowLinkHosts []string
	// AllowLinkRepos are repositories, as HOST/REPOSITORY, that LINKS may name blobs
	// of: they are read and mounted with the user's credentials. Without it only
	// those are that the caller names; a link to any other is followed as any loader
	// would, without credentials.
	AllowLinkRepos []string
	// Concurrency is how many blobs or members travel at once; 0 is 8.
	Concurrency int
	// CacheDir is a folder that remembers uploads under way, so that a push goes on
	// where another was ended; "" remembers none. Nothing that is published is taken
	// from it.
	CacheDir string
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// PushOptions say how a carton is pushed. The zero value is the default mapping.
type PushOptions struct {
	Options
	// Mapping says how the carton becomes an artifact. Its AllowInvalidInfo
	// and Image are set from AllowInvalid and Image.
	Mapping convert.Options
	// Image says whether the image form is pushed too. It sets Mapping's.
	Image ImageMode
	// ImageTag is the image form's tag; "" is each tag of the artifact, followed by
	// "-image".
	ImageTag string
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
	// DryRun asks the place what it has, and sends nothing.
	DryRun bool
	// AllowInvalid pushes a carton whose carton.toml, or what it refers to, breaks the
	// rules. Structure, names and hashes are never forgiven.
	AllowInvalid bool
	// Planned, which may be nil, is called once when it is known what the artifact
	// is, before anything is sent. The result's layers have no Status yet.
	Planned func(*PushResult)
}

// PullOptions say what a pull makes. The zero value writes a carton, named
// after the reference, into the working folder.
type PullOptions struct {
	Options
	// Output is the file to write; "" is the last part of the repository's name, a
	// hyphen, the tag or the first 12 digits of the digest, and ".carton".
	Output string
	// Unpack is a folder to write instead of a file.
	Unpack string
	// Folder, with Unpack, is the folder of the carton that becomes Unpack, such
	// as "model"; "" is all of it, MANIFEST included.
	Folder string
	// Include and Exclude, with Unpack, are patterns of member paths: of the
	// members that match an Include, or of all where there is none, those are
	// written that match no Exclude.
	Include, Exclude []string
	// Thin leaves out what LINKS can name: the raw layers under model/.
	Thin bool
	// LinkBase, with Thin, writes LinkBase/HASH into LINKS instead of the
	// registry's own address of the blob. It may hold neither user info nor a query:
	// LINKS is for everybody.
	LinkBase string
	// ModelHash refuses every other model, in lower-case hex.
	ModelHash string
	// Force replaces what is there, and copies from it what has the right hash.
	Force bool
	// From names cartons, image layouts and plain folders on this machine: what they
	// have of the model is copied, hashed on the way, and not downloaded.
	From []string
	// Wrap makes a carton of a model artifact that holds none; nil refuses it.
	Wrap *convert.Wrap
}

// defaultTag is what a pull takes where the reference names neither a tag nor a
// digest.
const defaultTag = "latest"
