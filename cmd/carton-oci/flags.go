package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// The flags that several commands share. One name means the same everywhere.

const (
	categoryOwn      = "flags"
	categoryLogin    = "login and certificates"
	categoryTransfer = "transfers"
	categoryLinks    = "links of thin cartons"
	categoryOutput   = "output"
)

// outputFlags are every command's.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Usage: "print the result as `FORM`: text or json", Value: "text", Category: categoryOutput},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the bare result", Category: categoryOutput},
		&cli.BoolFlag{Name: "no-progress", Usage: "don't show how far a transfer is", Category: categoryOutput},
		&cli.BoolFlag{Name: "debug", Usage: "log requests to standard error", Category: categoryOutput},
	}
}

// registryFlags are those of commands that speak to a registry.
func registryFlags() []cli.Flag {
	return append(inCategory(categoryLogin,
		&cli.StringFlag{Name: "username", Aliases: []string{"u"}, Usage: "log in as `NAME`"},
		&cli.BoolFlag{Name: "password-stdin", Usage: "read the password from standard input"},
		&cli.StringFlag{Name: "registry-config", Usage: "credentials are in `FILE`, a Docker config.json"},
		&cli.BoolFlag{Name: "plain-http", Usage: "speak HTTP without TLS"},
		&cli.BoolFlag{Name: "insecure", Usage: "accept any certificate"},
		&cli.StringFlag{Name: "ca-file", Usage: "trust the authorities in `FILE` (PEM)"},
		&cli.StringFlag{Name: "cert-file", Usage: "present the client certificate in `FILE` (PEM)"},
		&cli.StringFlag{Name: "key-file", Usage: "the client certificate's key is in `FILE` (PEM)"},
	), inCategory(categoryTransfer,
		&cli.IntFlag{Name: "retries", Usage: "try again at most `N` times in a row what fails without a byte", Value: defaultRetries},
		&cli.DurationFlag{Name: "stall-timeout", Usage: "give a request up that moves nothing for `DURATION`", Value: 30 * time.Second},
	)...)
}

// inCategory puts flags under one head of the help.
func inCategory(category string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.StringFlag:
			f.Category = category
		case *cli.StringSliceFlag:
			f.Category = category
		case *cli.BoolFlag:
			f.Category = category
		case *cli.DurationFlag:
			f.Category = category
		case *cli.IntFlag:
			f.Category = category
		case *cli.Uint64Flag:
			f.Category = category
		}
	}
	return flags
}

// sourceFlags are those of commands that read a SOURCE, wherever it is.
func sourceFlags() []cli.Flag {
	return append(registryFlags(),
		&cli.StringSliceFlag{
			Name: "allow-link-host", Category: categoryLinks,
			Usage: "follow links to `HOST[:PORT]` although it is private, or has no TLS (may be repeated)",
		},
		&cli.StringSliceFlag{
			Name: "allow-link-repo", Category: categoryLinks,
			Usage: "read what links name in `HOST/REPOSITORY` with the login for HOST (may be repeated)",
		},
		&cli.IntFlag{Name: "concurrency", Usage: "at most `N` transfers at once", Value: defaultConcurrency, Category: categoryTransfer},
	)
}

// uploadFlags are those of commands that send blobs to a registry.
func uploadFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{
		Name: "chunk-size", Category: categoryTransfer,
		Usage: "send blobs in chunks of `SIZE`, for registries that refuse large requests",
	}}
}

// defaultRetries make as many attempts as the library makes by default.
const defaultRetries = 7

// defaultConcurrency is how many blobs or members travel at once.
const defaultConcurrency = 8

// flags joins a command's own flags with shared ones.
func flags(own []cli.Flag, shared ...[]cli.Flag) []cli.Flag {
	for _, s := range shared {
		own = append(own, s...)
	}
	return append(own, outputFlags()...)
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

// notEmpty refuses flags that were given the empty string: most likely a shell
// variable that is not set.
func notEmpty(c *cli.Context, names ...string) error {
	for _, name := range names {
		if c.IsSet(name) && c.String(name) == "" {
			return usagef(c.Command.Name, "--%s is empty", name)
		}
	}
	return nil
}
