// Oras pushes files, pulls them again, resolves a reference and reads what says what
// a model is, with oras-go's own file store and oras.Copy, the way the oras command
// does it, with its defaults: five blobs at once on a push, three on a pull
// (https://github.com/oras-project/oras/blob/v1.3.0/cmd/oras/root/push.go,
// pull.go), a client that retries, HTTP/2 where TLS offers it. It is what the
// benchmark compares with.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

func main() {
	plainHTTP := flag.Bool("plain-http", false, "speak HTTP without TLS")
	dir := flag.String("dir", ".", "push the files below `DIR`, or pull into it")
	flag.Parse()
	ctx, verb := context.Background(), flag.Arg(0)
	repo, err := remote.NewRepository(flag.Arg(1))
	check(err)
	repo.PlainHTTP = *plainHTTP
	repo.Client = &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache()}
	tag, opts := repo.Reference.Reference, oras.DefaultCopyOptions
	switch verb {
	case "push", "pull":
		store, err := file.New(*dir)
		check(err)
		if verb == "push" {
			opts.Concurrency = 5
			push(ctx, store, *dir, repo, opts)
		} else {
			opts.Concurrency = 3
			_, err = oras.Copy(ctx, repo, tag, store, tag, opts)
			check(err)
		}
		check(store.Close())
	case "resolve": // as oras resolve
		_, err = oras.Resolve(ctx, repo, tag, oras.DefaultResolveOptions)
	case "inspect":
		inspect(ctx, repo, tag)
	default:
		err = fmt.Errorf("%q: want push, pull, resolve or inspect", verb)
	}
	check(err)
}

// inspect reads what carton-oci inspect does, which oras has no command for: the
// image manifest, then MANIFEST and carton.toml at the same time.
func inspect(ctx context.Context, repo *remote.Repository, tag string) {
	_, raw, err := oras.FetchBytes(ctx, repo, tag, oras.DefaultFetchBytesOptions)
	check(err)
	var m ocispec.Manifest
	check(json.Unmarshal(raw, &m))
	var group errgroup.Group
	for _, l := range m.Layers {
		if title := l.Annotations[ocispec.AnnotationTitle]; title == "MANIFEST" || title == "carton.toml" {
			group.Go(func() error {
				_, err := content.FetchAll(ctx, repo, l)
				return err
			})
		}
	}
	check(group.Wait())
}

func push(ctx context.Context, store *file.Store, dir string, repo *remote.Repository, opts oras.CopyOptions) {
	var layers []ocispec.Descriptor
	check(fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		layer, err := store.Add(ctx, name, filepath.Join(dir, name), "")
		layers = append(layers, layer)
		return err
	}))
	root, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, oras.MediaTypeUnknownArtifact,
		oras.PackManifestOptions{Layers: layers})
	check(err)
	check(store.Tag(ctx, root, root.Digest.String()))
	_, err = oras.Copy(ctx, store, root.Digest.String(), repo, repo.Reference.Reference, opts)
	check(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oras:", err)
		os.Exit(1)
	}
}
