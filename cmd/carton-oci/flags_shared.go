package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// flags joins a command's own flags with shared ones, and with those that every
// command has. The help has them in this order.
func (s *session) flags(own []cli.Flag, shared ...[]cli.Flag) []cli.Flag {
	return slices.Concat(inCategory(ownFlags, own...), slices.Concat(shared...), inCategory(forScripts,
		choice(&s.format, "format", "print the result as `FORM`: text or json (default text)", "text", "json"),
		yes(&s.quiet, "quiet", "print the bare result", "q"),
		yes(&s.noProgress, "no-progress", "don't show how far a transfer is"),
		yes(&s.debug, "debug", "log requests to standard error"),
		cli.HelpFlag,
	))
}

// registryFlags are those of commands that speak to a registry; transfers are what
// such a command has besides under that head.
func (s *session) registryFlags(transfers ...cli.Flag) []cli.Flag {
	return slices.Concat(s.transferFlags(transfers...), inCategory(forLogin, slices.Concat([]cli.Flag{
		text(&s.username, "username", "log in as `NAME`", "u"),
		yes(&s.passwordStdin, "password-stdin", "read the password from standard input"),
		s.registryConfigFlag(),
	}, s.tlsFlags())...))
}

// webFlags are those of commands that speak to a hub and to no registry.
func (s *session) webFlags() []cli.Flag {
	return slices.Concat(s.transferFlags(), inCategory(forLogin, s.tlsFlags()...))
}

func (s *session) transferFlags(more ...cli.Flag) []cli.Flag {
	r := &s.options.Registry
	return inCategory(forLines, append([]cli.Flag{
		&cli.IntFlag{
			Name: "retries", Usage: "try again at most `N` times in a row what fails without a byte",
			Value: registry.DefaultAttempts - 1, Destination: &s.retriesMost, Action: atLeast("retries", 0),
		},
		&cli.DurationFlag{
			Name: "stall-timeout", Usage: "give a request up that moves nothing for `DURATION`",
			Value: 30 * time.Second, Destination: &r.Policy.Stall, Action: atLeast("stall-timeout", time.Second),
		},
	}, more...)...)
}

func (s *session) tlsFlags() []cli.Flag {
	r := &s.options.Registry
	return []cli.Flag{
		yes(&r.PlainHTTP, "plain-http", "speak HTTP without TLS"),
		yes(&r.Insecure, "insecure", "accept any certificate"),
		text(&r.CAFile, "ca-file", "trust the authorities in `FILE` (PEM)"),
		text(&r.CertFile, "cert-file", "present the client certificate in `FILE` (PEM)"),
		text(&r.KeyFile, "key-file", "the client certificate's key is in `FILE` (PEM)"),
	}
}

func (s *session) registryConfigFlag() cli.Flag {
	return text(&s.registryConfig, "registry-config", "credentials are in `FILE`, a Docker config.json")
}

// sourceFlags are those of commands that read a SOURCE, wherever it is.
func (s *session) sourceFlags(transfers ...cli.Flag) []cli.Flag {
	return append(s.registryFlags(append([]cli.Flag{s.concurrencyFlag()}, transfers...)...), inCategory(forThin,
		each("allow-link-host", "follow links to `HOST[:PORT]` although it is private, or has no TLS",
			func(host string) error {
				s.options.AllowLinkHosts = append(s.options.AllowLinkHosts, host)
				if httprange.CheckAllow(host) != nil {
					return fmt.Errorf("got %s, want HOST or HOST:PORT", quoted(host))
				}
				return nil
			}),
		each("allow-link-repo", "read what links name in `HOST/REPOSITORY` with the login for HOST",
			func(repo string) error {
				s.options.AllowLinkRepos = append(s.options.AllowLinkRepos, repo)
				if ref, err := registry.ParseReference(repo); err != nil || ref.Target() != "" {
					return fmt.Errorf("got %s, want HOST/REPOSITORY", quoted(repo))
				}
				return nil
			}),
	)...)
}

func (s *session) concurrencyFlag() cli.Flag {
	return &cli.IntFlag{
		Name: "concurrency", Usage: "at most `N` transfers at once",
		Value: download.DefaultConcurrency, Destination: &s.concurrency, Action: atLeast("concurrency", 1),
	}
}

// chunkSizeFlag is of commands that send blobs to a registry.
func (s *session) chunkSizeFlag() cli.Flag {
	return parsed("chunk-size", "send blobs in chunks of `SIZE`, for registries that refuse large requests",
		func(text string) (err error) {
			if s.options.Registry.ChunkSize, err = parseSize(text); err != nil ||
				s.options.Registry.ChunkSize < minChunk {
				return errors.New("got " + quoted(text) + ", want 1MB or more")
			}
			return nil
		})
}

// minChunk is the smallest chunk, in bytes, that is worth a request.
const minChunk = 1_000_000

// atLeast refuses a number that is too small.
func atLeast[T int | time.Duration](name string, least T) func(*cli.Context, T) error {
	return func(c *cli.Context, n T) error {
		if n < least {
			return usagef(c.Command.Name, "--%s: got %v, want %v or more", name, n, least)
		}
		return nil
	}
}
