// Oras pushes files and pulls them again with oras-go's own file store and
// oras.Copy, the way the oras command does it, with its defaults: five blobs at
// once on a push, three on a pull
// (https://github.com/oras-project/oras/blob/v1.3.0/cmd/oras/root/push.go,
// pull.go), a client that retries, HTTP/2 where TLS offers it. It is what the
// benchmark compares with.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// What the command's --concurrency is when it is not given.
const (
	pushConcurrency = 5
	pullConcurrency = 3
)

func main() {
	caFile := flag.String("ca-file", "", "use TLS, and trust the authority in `FILE`")
	dir := flag.String("dir", ".", "push the files below `DIR`, or pull into it")
	flag.Parse()
	if err := run(context.Background(), *caFile, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "oras:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, caFile, dir string, args []string) error {
	if len(args) != 2 {
		return errors.New("want push REF or pull REF")
	}
	repo, err := repository(args[1], caFile)
	if err != nil {
		return err
	}
	if args[0] == "push" {
		return push(ctx, repo, dir)
	}
	return pull(ctx, repo, dir)
}

func repository(ref, caFile string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(ref)
	if err != nil {
		return nil, err
	}
	repo.PlainHTTP = caFile == ""
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	repo.Client = &auth.Client{
		Client: &http.Client{Transport: retry.NewTransport(transport)},
		Cache:  auth.NewCache(),
	}
	return repo, nil
}

func push(ctx context.Context, repo *remote.Repository, dir string) error {
	store, err := file.New(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	var names []string
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, err = filepath.Rel(dir, name)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var layers []ocispec.Descriptor
	for _, name := range names {
		layer, err := store.Add(ctx, name, "", "")
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	manifests := memory.New()
	root, err := oras.PackManifest(ctx, manifests, oras.PackManifestVersion1_1, oras.MediaTypeUnknownArtifact,
		oras.PackManifestOptions{Layers: layers})
	if err != nil {
		return err
	}
	if err := manifests.Tag(ctx, root, root.Digest.String()); err != nil {
		return err
	}
	opts := oras.DefaultCopyOptions
	opts.Concurrency = pushConcurrency
	_, err = oras.Copy(ctx, either{manifests, store}, root.Digest.String(), repo, repo.Reference.Reference, opts)
	return err
}

func pull(ctx context.Context, repo *remote.Repository, dir string) error {
	store, err := file.New(dir)
	if err != nil {
		return err
	}
	opts := oras.DefaultCopyOptions
	opts.Concurrency = pullConcurrency
	if _, err := oras.Copy(ctx, repo, repo.Reference.Reference, store, repo.Reference.Reference, opts); err != nil {
		return errors.Join(err, store.Close())
	}
	return store.Close()
}
