package client

import (
	"context"
	"errors"
	"io"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/convert"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// Options say how a [Client] reaches places. The zero value reaches registries over
// TLS with the credentials that Docker keeps, and links of public hosts.
type Options struct {
	// Registry says how registries are reached: the HTTP client, TLS, retries, where
	// uploads under way are remembered. Where its Credential is nil, credentials are
	// those that Docker, or else Podman, keeps.
	Registry registry.Options
	// Repository, where it is set, takes the place of registries: it returns what
	// keeps a repository's content, and may be called any number of times for one.
	// Locations are as ever, "host/repository:tag"; thin cartons need a LinkBase where
	// the store has no BlobURL.
	Repository func(ctx context.Context, registry, repository string) (layout.Store, error)
	// AllowLinkHosts are hosts, as HOST or HOST:PORT, that LINKS may name although
	// they are not public or speak no TLS.
	AllowLinkHosts []string
	// AllowLinkRepos are repositories, as HOST/REPOSITORY, that LINKS may name blobs
	// of: they are read and mounted with the user's credentials. Without it only
	// those are that the caller names; a link to any other is followed as any loader
	// would, without credentials.
	AllowLinkRepos []string
	// Policy, where it is set, says whose signatures are wanted of what is in a
	// repository, nil for nobody's, and by which file. It is asked whatever the options
	// of a call say, before any weight is read; an error of it is the call's.
	// [policy.Lazily] returns that of the user.
	Policy func(registry, repository string) (trust *signature.Trust, by string, err error)
}

// PushOptions say how a carton is pushed. The zero value is the default mapping.
type PushOptions struct {
	// Mapping says how the carton becomes an artifact, and with its Image that the
	// image form is pushed too. A carton whose carton.toml, or what it refers to,
	// breaks the rules is pushed where its AllowInvalid is set; structure, names and
	// hashes are never forgiven. Its LinkOrigins are besides Options.AllowLinkRepos.
	Mapping convert.Options
	// ImageTag is the image form's tag; "" is each tag of the artifact, followed by
	// "-image".
	ImageTag string
	// LeaveImage leaves an image form of another model as it is. Without it, a push of
	// the artifact alone is refused where its tag would move away from such a one:
	// tags that belong together don't drift apart by accident.
	LeaveImage bool
	// NoClobber refuses to move a tag that points to something else.
	NoClobber bool
	// Force replaces an archive that exists. A new archive has nothing of the old one.
	Force bool
	// DryRun asks the place what it has, and sends nothing.
	DryRun bool
	// Trust, where it is set, refuses a source that none of those has signed, and
	// Signature is the file with its signature, as in OpenOptions.
	Trust     *signature.Trust
	Signature string
	// Signer, where it is set, signs what is pushed, as [Client.Sign] does, before any
	// tag points to it.
	Signer *signature.Signer
	// Planned, which may be nil, is called once when it is known what the artifact
	// is, before anything is sent. The result's layers have no Status yet.
	Planned func(*PushResult)
	// Concurrency is how many blobs travel at once; 0 is 8.
	Concurrency int
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// opening says how the place is opened.
func (o PushOptions) opening() opening {
	if o.Force {
		return replacing
	}
	return writing
}

// check refuses options that contradict each other.
func (o PushOptions) check() error {
	switch m := o.Mapping; {
	case m.Image && o.LeaveImage:
		return errors.New("got an image form to push, and one to leave as it is")
	case !m.Image && o.ImageTag != "":
		return errors.New("got a tag for the image form, and no image form to push")
	case !m.Image && m.ImageSubject && m.Compat != convert.CompatImage: // convert refuses that
		return errors.New("got a subject for the image form, and no image form to push")
	}
	return nil
}

// PullOptions say what a pull makes. The zero value writes a carton, named
// after the reference, into the working folder.
type PullOptions struct {
	// Output is the file to write; "" is the last part of the repository's name, a
	// hyphen, the tag or the first 12 digits of the digest, and ".carton".
	Output string
	// OutputDir is the folder of the file where Output names none; "" is the current
	// one.
	OutputDir string
	// Stream, where it is not nil, is given the carton instead of a file, as
	// [carton.Stream] does: what it has been given after an error is to be thrown away.
	Stream io.Writer
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
	// Trust, where it is set, refuses what none of those has signed, and Signature is the
	// file with its signature, as in OpenOptions.
	Trust     *signature.Trust
	Signature string
	// Force replaces what is there, and copies from it what has the right hash.
	Force bool
	// From names cartons, image layouts and plain folders on this machine: what they
	// have of the model is copied, hashed on the way, and not downloaded.
	From []string
	// Wrap makes a carton of a model artifact that holds none; nil refuses it.
	Wrap *carton.Runner
	// Concurrency is how many blobs travel at once; 0 is 8.
	Concurrency int
	// Progress, which may be nil, is told what happens to each transfer.
	Progress progress.Func
}

// defaultTag is what a pull takes where the reference names neither a tag nor a
// digest.
const defaultTag = "latest"
