package client

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/opencontainers/go-digest"
)

// PullResult says what a pull made. Its JSON is what `pull --format json` prints.
type PullResult struct {
	// Reference is what was pulled, with the tag that was taken.
	Reference string `json:"reference"`
	// Digest is the image manifest's that the reference stood for; "" where what
	// was pulled is no artifact.
	Digest digest.Digest `json:"digest,omitempty"`
	// ModelHash is the model's identity, in lower-case hex.
	ModelHash string `json:"modelHash"`
	// Path is the file or folder that is there now, "" of a carton that was streamed.
	Path string `json:"path"`
	// BytesDownloaded counts the bytes of blobs and links that were received in
	// this run.
	BytesDownloaded int64 `json:"bytesDownloaded"`
	// BytesResumed counts the bytes of an earlier pull that were used again.
	BytesResumed int64 `json:"bytesResumed"`
	// BytesReused counts the bytes of members that were copied from what Force
	// replaced or From named.
	BytesReused int64 `json:"bytesReused"`
	// NotReused says which members of those were damaged, or could not be read, so
	// that they were downloaded.
	NotReused []string `json:"notReused,omitempty"`
	// Seconds is how long the pull took.
	Seconds float64 `json:"seconds"`
	// AlreadyHere: the output was there, whole; nothing was written.
	AlreadyHere bool `json:"alreadyHere,omitempty"`
	// Regenerated: the artifact holds no MANIFEST, and the model hash is that of
	// one made from its content, not its author's.
	Regenerated bool `json:"regenerated,omitempty"`
	// Unlisted are layers of the artifact that MANIFEST lists nothing of. They are no
	// members, and were left out.
	Unlisted []string `json:"unlisted,omitempty"`
	// Signature is the file with the model's signature, where one was wanted and
	// counted: it lies beside Path. "" of a part of a model.
	Signature string `json:"signature,omitempty"`
	// SignatureInTheWay is what has that name and is something else. It was left as it is.
	SignatureInTheWay string `json:"signatureInTheWay,omitempty"`
	// LinksNeedToken: a thin carton's links can't be followed without
	// credentials, which loaders of cartons don't send.
	LinksNeedToken bool `json:"linksNeedToken,omitempty"`
}

// Pull makes a carton of what ref names: an artifact, or any other location that
// [location.Parse] reads, such as a thin carton that is to become whole. What it
// writes was checked against the model hash, every byte.
//
// A pull that was broken off leaves what has arrived beside the output, and the
// same call goes on with it; the error's hints say so.
//
// An output that exists is not replaced without Force: where it is what this call
// would make, and nobody else can change it, it is verified and the result says
// AlreadyHere, else the error wraps carton.ErrExist. With Force a folder
// is replaced as [carton.ExtractOptions] says. An output inside of what is pulled
// is refused.
func (c *Client) Pull(ctx context.Context, ref string, opts PullOptions) (*PullResult, error) {
	start := time.Now()
	loc, err := opts.source(ref)
	if err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	result, err := c.call().pull(ctx, loc, opts)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", loc.Redacted(), err)
	}
	result.Seconds = seconds(start)
	return result, nil
}

// source says what is pulled, and refuses options that contradict each other.
func (o PullOptions) source(ref string) (location.Location, error) {
	switch {
	case o.Stream != nil && (o.Output != "" || o.Unpack != "" || o.Force || len(o.From) > 0):
		return location.Location{}, errors.New(
			"got a stream, and a file or folder to write, to replace or to copy from")
	case o.OutputDir != "" && (o.Stream != nil || o.Output != "" || o.Unpack != ""):
		return location.Location{}, errors.New("got a folder for the file to write, and what is to be written instead")
	case o.Unpack != "" && (o.Output != "" || o.Thin):
		return location.Location{}, errors.New("got a folder to unpack to, and a file or thin carton to write")
	case o.Unpack == "" && (o.Folder != "" || len(o.Include)+len(o.Exclude) > 0):
		return location.Location{}, errors.New("got a choice of members, and no folder to unpack them to")
	case !o.Thin && o.LinkBase != "":
		return location.Location{}, errors.New("got a base for links, and no thin carton to write")
	}
	if err := checkLinkBase(o.LinkBase); err != nil {
		return location.Location{}, err
	}
	return location.Parse(ref)
}

func (c *call) pull(ctx context.Context, loc location.Location, opts PullOptions) (*PullResult, error) {
	src, err := c.open(ctx, loc, OpenOptions{
		Wrap: opts.Wrap, ModelHash: opts.ModelHash, Trust: opts.Trust, Signature: opts.Signature,
	})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if opts.Wrap != nil && (src.artifact == nil || !src.artifact.Wrapped()) {
		err := errors.New("is a carton already, and says itself how it is loaded")
		return nil, hint.With(err, "pull it without %s", hint.Wrap)
	}
	result := &PullResult{Reference: src.loc.Redacted(), ModelHash: src.Manifest().ModelHash()}
	if src.artifact != nil {
		result.Digest = src.artifact.Descriptor().Digest
		result.Regenerated = src.artifact.Regenerated()
	}
	if err := c.pullOpened(ctx, src, opts, result); err != nil {
		return result, err
	}
	return result, leaveSignature(src, opts, result)
}

// pullOpened makes what opts ask for of what was opened.
func (c *call) pullOpened(ctx context.Context, src *opened, opts PullOptions, result *PullResult) error {
	if opts.Stream != nil {
		return c.stream(ctx, src, opts, result)
	}
	if opts.Unpack == "" && opts.Output == "" {
		name, err := defaultName(src.loc, result.Digest)
		if err != nil {
			return err
		}
		opts.Output = filepath.Join(opts.OutputDir, name)
	}
	result.Path = filepath.Clean(opts.Output + opts.Unpack) // one of them is empty
	if err := opts.refuseSource(src.loc, result.Path); err != nil {
		return err
	}
	var links *carton.Links
	var err error
	if opts.Thin {
		if links, err = thinLinks(ctx, src, opts.LinkBase); err != nil {
			return err
		}
	}
	if !opts.Force {
		result.AlreadyHere, err = alreadyHere(ctx, src.Source, result.Path, links, opts)
		if err != nil || result.AlreadyHere {
			return err
		}
	}
	copies, err := c.copies(ctx, opts, result.Path)
	if err != nil {
		return err
	}
	defer copies.Close()
	if src.artifact != nil {
		if _, err := src.Members(ctx); err != nil {
			return err
		}
		result.Unlisted = src.artifact.Unlisted()
	}
	if opts.Unpack != "" {
		extract := opts.extract()
		extract.Copies, extract.Resumed = copies, func(n int64) { result.BytesResumed = n }
		err = carton.Extract(ctx, opts.Unpack, src.Source, extract)
	} else {
		err = c.writeCarton(ctx, src, opts, links, copies, result)
	}
	if errors.Is(err, carton.ErrLink) {
		err = whyNoLink(ctx, src, err)
	}
	result.BytesDownloaded, result.BytesReused = c.received.Load(), copies.Used()
	for _, err := range copies.Refused() {
		result.NotReused = append(result.NotReused, err.Error())
	}
	return err
}

// stream gives the carton to opts.Stream.
func (c *call) stream(ctx context.Context, src *opened, opts PullOptions, result *PullResult) (err error) {
	o := carton.StreamOptions{Progress: opts.Progress}
	if opts.Thin {
		if o.Thin, err = thinLinks(ctx, src, opts.LinkBase); err != nil {
			return err
		}
		result.LinksNeedToken = opts.LinkBase == "" && !c.anybodyCanRead(ctx, o.Thin)
	}
	if src.artifact != nil {
		if _, err := src.Members(ctx); err != nil {
			return err
		}
		result.Unlisted = src.artifact.Unlisted()
	}
	err = carton.Stream(ctx, opts.Stream, src.Source, o)
	if errors.Is(err, carton.ErrLink) {
		err = whyNoLink(ctx, src, err)
	}
	result.BytesDownloaded = c.received.Load()
	return err
}

// whyNoLink returns the reason why a linked member of src can't be had, where
// err only says that nobody tells its size.
func whyNoLink(ctx context.Context, src *opened, err error) error {
	var about *carton.Error
	members, merr := src.Members(ctx)
	if merr != nil || !errors.As(err, &about) {
		return err
	}
	for _, m := range members {
		if m.Path == about.Path && m.Place == carton.PlaceLinked && m.Size < 0 {
			r, why := src.Open(ctx, m.Path)
			if why != nil {
				return why
			}
			r.Close()
		}
	}
	return err
}

// refuseSource refuses an output inside of what is pulled. A folder may be
// unpacked to its own name: it is read until the new one takes its place.
func (o PullOptions) refuseSource(from location.Location, out string) error {
	if from.Kind == location.KindPath && o.Unpack != "" && sameFile(from.Path, out) {
		return nil
	}
	return refuseInside(from, out)
}

// writeCarton writes the file that opts ask for, with links if it is a thin one.
func (c *call) writeCarton(
	ctx context.Context, src *opened, opts PullOptions, links *carton.Links, copies *carton.Copies, result *PullResult,
) error {
	o := carton.AssembleOptions{
		Replace: opts.Force, Thin: links, Concurrency: opts.Concurrency, Copies: copies, Progress: opts.Progress,
		Resumed: func(n int64) { result.BytesResumed = n },
	}
	if opts.Thin && opts.LinkBase == "" {
		result.LinksNeedToken = !c.anybodyCanRead(ctx, links)
	}
	return carton.Assemble(ctx, opts.Output, src.Source, o)
}
