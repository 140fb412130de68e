// Go shows how a program pushes and pulls cartons with the library:
//
//	go run ./examples/go push model.carton localhost:5000/org/m:1
//	go run ./examples/go pull localhost:5000/org/m:1 model.carton
//
// Credentials come from where Docker keeps them, unless REGISTRY_USER and
// REGISTRY_PASSWORD are set.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: push SOURCE REFERENCE, or pull REFERENCE FILE")
	}
	switch args[0] {
	case "push":
		return push(ctx, args[1], args[2])
	case "pull":
		return pull(ctx, args[1], args[2])
	}
	return fmt.Errorf("got %q, want push or pull", args[0])
}

func push(ctx context.Context, source, reference string) error {
	result, err := client.Push(ctx, source, reference, client.PushOptions{Options: options(), NoClobber: true})
	switch {
	case errors.Is(err, registry.ErrUnauthorized):
		return fmt.Errorf("%w (is REGISTRY_PASSWORD right?)", err)
	case err != nil:
		return err
	}
	fmt.Printf("%s holds model %s as %s; %d bytes were sent\n",
		result.Reference, result.ModelHash, result.Digest, result.BytesUploaded)
	return nil
}

func pull(ctx context.Context, reference, file string) error {
	result, err := client.Pull(ctx, reference, client.PullOptions{Options: options(), Output: file})
	switch {
	case errors.Is(err, layout.ErrNotFound):
		return fmt.Errorf("%w (was it pushed?)", err)
	case errors.Is(err, carton.ErrChecksum):
		return fmt.Errorf("%w (the registry's copy is damaged)", err)
	case err != nil:
		return err
	}
	// The carton can be read without unpacking it.
	src, err := carton.Open(result.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := carton.ReadInfo(ctx, src)
	if err != nil {
		return err
	}
	fmt.Printf("%s is %q, model %s, for the runner %s\n", result.Path, info.ModelName, result.ModelHash, info.Runner.Name)
	return nil
}

// options are the same for both ways.
func options() client.Options {
	opts := client.Options{
		Registry: registry.Options{
			// A client of one's own: for proxies, metrics, or a time limit on headers.
			HTTPClient: &http.Client{Transport: &http.Transport{
				Proxy:                 http.ProxyFromEnvironment,
				ResponseHeaderTimeout: time.Minute,
			}},
		},
		// Called from many goroutines at once, and in the middle of a transfer.
		Progress: func(e progress.Event) {
			if e.State == progress.Finished || e.State == progress.Exists || e.State == progress.Mounted {
				fmt.Fprintf(os.Stderr, "%s %s\n", e.State, e.Name)
			}
		},
	}
	if user := os.Getenv("REGISTRY_USER"); user != "" {
		opts.Registry.Credential = func(context.Context, string) (auth.Credential, error) {
			return auth.Credential{Username: user, Password: os.Getenv("REGISTRY_PASSWORD")}, nil
		}
	}
	return opts
}
