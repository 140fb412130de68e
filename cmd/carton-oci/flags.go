package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/carton-oci/carton-oci/internal/sha256hex"
)

// A flag is bound to the option that it sets, so that it is declared, checked and
// read in one place. One name means the same in every command.

// text is a flag for a text, yes for what is done or not; letter is its short form.
func text(to *string, name, usage string, letter ...string) cli.Flag {
	return &cli.StringFlag{Name: name, Aliases: letter, Usage: usage, Destination: to}
}

func yes(to *bool, name, usage string, letter ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: letter, Usage: usage, Destination: to}
}

// parsed is a flag whose value is read by a function.
func parsed(name, usage string, read func(text string) error, letter ...string) cli.Flag {
	return &cli.StringFlag{Name: name, Aliases: letter, Usage: usage, Action: func(c *cli.Context, text string) error {
		return refuse(c, name, read(text))
	}}
}

// each is a flag that may be repeated, whose values are read by a function.
func each(name, usage string, read func(text string) error) cli.Flag {
	usage += "; may be repeated"
	return &cli.StringSliceFlag{
		Name: name, Usage: usage, KeepSpace: true,
		Action: func(c *cli.Context, texts []string) error {
			for _, text := range texts {
				if err := read(text); err != nil {
					return refuse(c, name, err)
				}
			}
			return nil
		},
	}
}

// list is a flag that may be repeated.
func list(to *[]string, name, usage string) cli.Flag {
	return each(name, usage, func(text string) error {
		*to = append(*to, text)
		return nil
	})
}

// choice is a flag that has a fixed set of values.
func choice[T ~string](to *T, name, usage string, values ...T) cli.Flag {
	f := parsed(name, usage, func(text string) error {
		*to = T(text)
		return oneOf(*to, values)
	})
	return &choiceFlag{f.(*cli.StringFlag), listOf(values, func(v T) string { return string(v) })}
}

type choiceFlag struct {
	*cli.StringFlag
	values []string
}

func oneOf[T ~string](got T, values []T) error {
	if slices.Contains(values, got) {
		return nil
	}
	names := listOf(values, func(v T) string { return string(v) })
	return fmt.Errorf("got %s, want %s", quoted(string(got)), strings.Join(names, " or "))
}

// stream is what a flag for a file is given for standard output.
const stream = "-"

// outputFolder is a flag that names a folder to write: never standard output.
func outputFolder(to *string, name, usage string) cli.Flag {
	return parsed(name, usage, func(text string) error {
		if *to = text; text != stream {
			return nil
		}
		return withHint(errors.New("a folder is not written to standard output"),
			"./- is a folder of that name; pull -o - writes a carton to standard output")
	})
}

// modelHash is a flag for the model hash that is wanted.
func modelHash(to *string) cli.Flag {
	return parsed("model-hash", "refuse every model but `HEX`", func(text string) error {
		if *to = text; !sha256hex.Is(text) {
			return fmt.Errorf("got %s, want "+sha256hex.Want, quoted(text))
		}
		return nil
	})
}

// sendFlags and imageFormFlags are those of commands that bring something new to a
// registry, and make an image form.
func sendFlags(noClobber, dryRun *bool) []cli.Flag {
	return []cli.Flag{
		noClobberFlag(noClobber),
		yes(dryRun, "dry-run", "say what would be sent, and send nothing"),
	}
}

// forceFlag is of commands that may write an archive.
func forceFlag(to *bool) cli.Flag {
	return yes(to, "force", "replace an archive that exists")
}

// annotationFlag is a flag for annotations of what is made.
func annotationFlag(to *map[string]string, usage string) cli.Flag {
	return each("annotation", usage, func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return fmt.Errorf("got %s, want KEY=VALUE", quoted(text))
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[key] = value
		return nil
	})
}

func noClobberFlag(to *bool) cli.Flag {
	return yes(to, "no-clobber", "refuse to move a tag that points to something else")
}

func imageFormFlags(tag *string, subject *bool) []cli.Flag {
	return []cli.Flag{
		text(tag, "image-tag", "tag the image form with `NAME`"),
		yes(subject, "image-subject", "make the image form refer to the artifact, which then lists it"),
	}
}

// refuse keeps what is wrong with a flag's value until all flags were read, so that
// all of it is said at once.
func refuse(c *cli.Context, name string, err error) error {
	if err != nil {
		said, _ := c.App.Metadata[wrongValues].([]error)
		c.App.Metadata[wrongValues] = append(said, &usageError{fmt.Errorf("%s: --%s: %w", c.Command.Name, name, err)})
	}
	return nil
}

const wrongValues = "wrong values"

// valuesError returns what is wrong with the values of flags.
func valuesError(c *cli.Context) error {
	said, _ := c.App.Metadata[wrongValues].([]error)
	return errors.Join(said...)
}

// inCategory puts flags under one head of the help. Every sort of flag has the
// field, and none a method that sets it.
func inCategory(head string, flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		reflect.ValueOf(f).Elem().FieldByName("Category").SetString(head)
	}
	return flags
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
