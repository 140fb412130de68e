package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

func (s *session) loginCommand() *cli.Command {
	return &cli.Command{
		Name:      "login",
		Usage:     "keep a user name and password for a registry",
		ArgsUsage: "REGISTRY",
		UsageText: `carton-oci login ghcr.io
carton-oci login ghcr.io -u NAME --password-stdin <token.txt`,
		Description: `They are tried first, and kept where Docker keeps them, or Podman where
REGISTRY_AUTH_FILE is set. What is not given is asked for on a terminal.`,
		Flags:  s.flags(nil, s.registryFlags()),
		Action: s.command(s.runLogin),
	}
}

func (s *session) logoutCommand() *cli.Command {
	return &cli.Command{
		Name:      "logout",
		Usage:     "forget the user name and password for a registry",
		ArgsUsage: "REGISTRY",
		UsageText: "carton-oci logout ghcr.io",
		Flags:     s.flags(nil, inCategory(forLogin, s.registryConfigFlag())),
		Action:    s.command(s.runLogout),
	}
}

func (s *session) runLogin(c *cli.Context) error {
	host := c.Args().Get(0)
	if strings.Contains(host, "/") {
		return withHint(usagef("login", "got %s, want a host", quoted(host)),
			"write localhost:5000, not its URL or a repository")
	}
	if location.IsHubHost(host) {
		return withHint(usagef("login", "%s is the hub, and no registry", quoted(host)),
			"its token is read from HF_TOKEN, or from where hf auth login keeps it")
	}
	cred, err := s.readCredential(c, true)
	if err != nil {
		return err
	}
	client, err := registry.NewClient(s.options.Registry)
	if err != nil {
		return fmt.Errorf("login %s: %w", host, err)
	}
	warning, err := client.Login(c.Context, s.kept, host, cred)
	if err != nil {
		return fmt.Errorf("login %s: %w", host, err)
	}
	if warning != "" {
		s.warnf("%s", warning)
	}
	s.result(map[string]string{"registry": host, "username": cred.Username}, nil, func() {
		s.linef("logged in to %s as %s", host, cred.Username)
	})
	return nil
}

func (s *session) runLogout(c *cli.Context) error {
	host := c.Args().Get(0)
	removed, err := registry.DockerCredentials(s.registryConfig).Logout(c.Context, host)
	if err != nil {
		return fmt.Errorf("logout %s: %w", host, err)
	}
	s.result(map[string]any{"registry": host, "removed": removed}, nil, func() {
		if removed {
			s.linef("logged out of %s", host)
		} else {
			s.linef("was not logged in to %s", host)
		}
	})
	return nil
}

// locate reads a word that names a place, and logs in there as the command line
// says.
func (s *session) locate(c *cli.Context, word string) (location.Location, error) {
	loc, err := location.Parse(word)
	if err != nil {
		return loc, fmt.Errorf("%s: %w", c.Command.Name, err)
	}
	return loc, s.logInAs(c, loc)
}

// logInAs makes the session send the user name and password of the command line
// to loc's registry, and to no other.
func (s *session) logInAs(c *cli.Context, loc location.Location) error {
	if s.username == "" && !s.passwordStdin {
		return nil
	}
	if loc.Kind != location.KindRegistry {
		return usagef(c.Command.Name, "--username: %s is in no registry", loc.Redacted())
	}
	cred, err := s.readCredential(c, false)
	if err != nil {
		return err
	}
	s.given = auth.StaticCredential(loc.Registry, cred)
	return nil
}

// credential finds the user name and password for a registry.
func (s *session) credential(ctx context.Context, hostport string) (auth.Credential, error) {
	if s.given != nil {
		if cred, err := s.given(ctx, hostport); err != nil || cred != auth.EmptyCredential {
			return cred, err
		}
	}
	return s.kept.Credential(ctx, hostport)
}

// readCredential reads the user name and password: from the flags, from standard
// input, from the person at the terminal. ask allows to ask for the user name.
func (s *session) readCredential(c *cli.Context, ask bool) (auth.Credential, error) {
	cred := auth.Credential{Username: s.username}
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	var err error
	switch {
	case cred.Username == "" && (!ask || !terminal || s.passwordStdin):
		return cred, usagef(c.Command.Name, "got no user name, want --username NAME")
	case cred.Username == "":
		fmt.Fprint(s.err, "user name: ")
		if cred.Username, err = wait(c.Context, readLine); err != nil || cred.Username == "" {
			return cred, usagef(c.Command.Name, "got no user name")
		}
	}
	switch {
	case s.passwordStdin:
		cred.Password, err = wait(c.Context, readLine)
	case terminal:
		cred.Password, err = askPassword(c.Context, s.err)
	default:
		return cred, usagef(c.Command.Name, "got no password, want --password-stdin")
	}
	if err != nil {
		return cred, fmt.Errorf("%s: read the password: %w", c.Command.Name, err)
	}
	if cred.Password == "" {
		return cred, usagef(c.Command.Name, "the password is empty")
	}
	return cred, nil
}

// askPassword reads a password that the terminal does not show. A signal puts
// the terminal back as it was.
func askPassword(ctx context.Context, w io.Writer) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(w, "password: ")
	defer fmt.Fprintln(w)
	password, err := wait(ctx, func() (string, error) {
		b, err := term.ReadPassword(fd)
		return string(b), err
	})
	if ctx.Err() != nil {
		_ = term.Restore(fd, before) // the program ends
	}
	return password, err
}

// wait gives up waiting for somebody who types when ctx ends. read then goes on
// by itself; the program ends anyway.
func wait(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readLine reads standard input up to the first newline, or all where there is
// none.
func readLine() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(os.Stdin, maxLine)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && len(line) == maxLine {
		err = fmt.Errorf("got more than %d bytes on one line", maxLine-1)
	}
	return strings.TrimRight(line, "\r\n"), err
}

// maxLine is the longest user name or password, in bytes. Tokens are long.
const maxLine = 64 << 10
