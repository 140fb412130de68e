package main

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/carton-oci/carton-oci/internal/download"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/urfave/cli/v2"
)

// The flags that several commands share. One name means the same everywhere.

// flags joins a command's own flags with shared ones, and with those that every
// command has. The help has them in this order.
func flags(own []cli.Flag, shared ...[]cli.Flag) []cli.Flag {
	return slices.Concat(inCategory("flags", own...), slices.Concat(shared...), inCategory("output",
		&cli.StringFlag{Name: "format", Usage: "print the result as `FORM`: text or json", Value: "text"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the bare result"},
		&cli.BoolFlag{Name: "no-progress", Usage: "don't show how far a transfer is"},
		&cli.BoolFlag{Name: "debug", Usage: "log requests to standard error"},
		cli.HelpFlag,
	))
}

// inCategory puts flags under one head of the help. Every sort of flag has the
// field, and none a method that sets it.
func inCategory(head string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		reflect.ValueOf(f).Elem().FieldByName("Category").SetString(head)
	}
	return flags
}

// registryFlags are those of commands that speak to a registry; transfers are what
// such a command has besides under that head.
func registryFlags(transfers ...cli.Flag) []cli.Flag {
	return slices.Concat(inCategory("transfers", append([]cli.Flag{
		&cli.IntFlag{Name: "retries", Usage: "try again at most `N` times in a row what fails without a byte", Value: registry.DefaultAttempts - 1},
		&cli.DurationFlag{Name: "stall-timeout", Usage: "give a request up that moves nothing for `DURATION`", Value: 30 * time.Second},
	}, transfers...)...), inCategory("login and certificates",
		&cli.StringFlag{Name: "username", Aliases: []string{"u"}, Usage: "log in as `NAME`"},
		&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from standard input"},
		&cli.StringFlag{Name: "registry-config", Usage: "credentials are in `FILE`, a Docker config.json"},
		&cli.BoolFlag{Name: "plain-http", Usage: "speak HTTP without TLS"},
		&cli.BoolFlag{Name: "insecure", Usage: "accept any certificate"},
		&cli.StringFlag{Name: "ca-file", Usage: "trust the authorities in `FILE` (PEM)"},
		&cli.StringFlag{Name: "cert-file", Usage: "present the client certificate in `FILE` (PEM)"},
		&cli.StringFlag{Name: "key-file", Usage: "the client certificate's key is in `FILE` (PEM)"},
	))
}

// sourceFlags are those of commands that read a SOURCE, wherever it is.
func sourceFlags(transfers ...cli.Flag) []cli.Flag {
	return append(registryFlags(append([]cli.Flag{concurrencyFlag()}, transfers...)...), inCategory("links of thin cartons",
		&cli.StringSliceFlag{
			Name:  "allow-link-host",
			Usage: "follow links to `HOST[:PORT]` although it is private, or has no TLS (may be repeated)",
		},
		&cli.StringSliceFlag{
			Name:  "allow-link-repo",
			Usage: "read what links name in `HOST/REPOSITORY` with the login for HOST (may be repeated)",
		},
	)...)
}

func concurrencyFlag() cli.Flag {
	return &cli.IntFlag{Name: "concurrency", Usage: "at most `N` transfers at once", Value: download.DefaultConcurrency}
}

// chunkSizeFlag is of commands that send blobs to a registry.
func chunkSizeFlag() cli.Flag {
	return &cli.StringFlag{Name: "chunk-size", Usage: "send blobs in chunks of `SIZE`, for registries that refuse large requests"}
}

// oneOf returns the value of a flag that has a fixed set of values.
func oneOf(c *cli.Context, name string, values ...string) (string, error) {
	got := c.String(name)
	for _, v := range values {
		if got == v {
			return v, nil
		}
	}
	return "", usagef(c.Command.Name, "--%s: got %s, want %s", name, quoted(got), strings.Join(values, " or "))
}

// onlyWith refuses flags that mean nothing without another.
func onlyWith(c *cli.Context, needed string, names ...string) error {
	for _, name := range names {
		if c.IsSet(name) && !c.IsSet(needed) {
			return usagef(c.Command.Name, "--%s needs --%s", name, needed)
		}
	}
	return nil
}

// notBoth refuses two flags at once.
func notBoth(c *cli.Context, one string, others ...string) error {
	for _, other := range others {
		if c.IsSet(one) && c.IsSet(other) {
			return usagef(c.Command.Name, "got --%s and --%s, want one of them", one, other)
		}
	}
	return nil
}

// notStandardOutput refuses "-" as the name of what a command writes.
func notStandardOutput(c *cli.Context, names ...string) error {
	for _, name := range names {
		if c.String(name) == "-" {
			err := usagef(c.Command.Name, "--%s -: a carton is not written to standard output: the checksums of its members stand before them, and are known when all of them were read", name)
			return withHint(err, "write a file, and print that; carton-oci cat SOURCE PATH prints one member; ./- is a file of that name")
		}
	}
	return nil
}
