package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/errtext"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

const (
	// maxHelperBytes is the most that a helper may print: tokens have some kilobytes.
	maxHelperBytes = 1 << 20
	// helperGrace is how long is waited for the end of a helper that was killed, and
	// of what it left behind with its output open.
	helperGrace = time.Second
	// tokenUser is the user name of what is no password but an identity token.
	// https://docs.docker.com/reference/cli/docker/login/#credential-helper-protocol
	tokenUser = "<token>"
	// notFound is what a helper prints that keeps nothing for a registry.
	// https://github.com/docker/docker-credential-helpers/blob/v0.9.4/credentials/error.go
	notFound = "credentials not found in native keychain"
)

// helperTimeout is how long a helper program may take. Some ask a person.
var helperTimeout = 30 * time.Second

// helperRE is what a helper may be called: no path.
var helperRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// helperCredential is what a helper reads to store and prints to get.
type helperCredential struct {
	ServerURL string
	Username  string
	Secret    string
}

// runHelper runs docker-credential-NAME: "get", "store" or "erase". A helper that
// takes too long or prints too much is killed, with all that it started. What it
// prints goes nowhere but into the error of one that failed. oras-go's way to run
// helpers waits for whatever holds the output open, keeps all of it, and lets
// them write to our stderr.
// https://docs.docker.com/engine/reference/commandline/login/#credential-helper-protocol
func runHelper(ctx context.Context, name, action, account string, cred auth.Credential) (auth.Credential, error) {
	if !helperRE.MatchString(name) {
		return auth.EmptyCredential, failCredentials("%s credentials for %s: got the helper %q, want a name", action,
			account, name)
	}
	program, input := "docker-credential-"+name, account
	if action == "store" {
		input = helperInput(account, cred)
	}
	text, err := execHelper(ctx, program, action, input)
	var got helperCredential
	if err == nil && action == "get" && json.Unmarshal([]byte(text), &got) != nil {
		err = errors.New("printed something else than JSON")
	}
	switch {
	case err == nil && got.Username == tokenUser:
		return auth.Credential{RefreshToken: got.Secret}, nil
	case err == nil:
		return auth.Credential{Username: got.Username, Password: got.Secret}, nil
	case ctx.Err() != nil:
		return auth.EmptyCredential, context.Cause(ctx)
	}
	err = fmt.Errorf("%s credentials for %s: %s: %w", action, account, program, err)
	return auth.EmptyCredential, &credentialError{hint.With(err,
		"the file that names this helper is Docker's config.json, or what %s says", hint.RegistryConfig)}
}

// execHelper returns what a helper prints, {} where it has nothing for the account.
func execHelper(ctx context.Context, program, action, input string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, action)
	stdout, stderr := &limitedOutput{full: cancel}, &limitedOutput{full: cancel}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(input), stdout, stderr, helperGrace
	ownGroup(cmd)
	err := cmd.Run()
	switch {
	case stdout.over || stderr.over:
		return "", fmt.Errorf("printed more than %d bytes", maxHelperBytes)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("no answer within %s", helperTimeout)
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("there is no such program")
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it may have left something running
		return stdout.String(), nil
	case action == "get" && stdout.String() == notFound:
		return "{}", nil
	}
	return "", helperFailed(err, stdout.String(), stderr.String())
}

// helperInput is what a helper reads to store a credential.
func helperInput(account string, cred auth.Credential) string {
	in := helperCredential{ServerURL: account, Username: cred.Username, Secret: cred.Password}
	if cred.RefreshToken != "" {
		in.Username, in.Secret = tokenUser, cred.RefreshToken
	}
	b, _ := json.Marshal(in) // strings
	return string(b)
}

// helperFailed says what went wrong with a helper, in its own words where they are
// no secret.
func helperFailed(err error, texts ...string) error {
	for _, text := range texts {
		switch {
		case text == "":
		case strings.ContainsAny(text, "{}") || strings.Contains(strings.ToLower(text), "secret"):
			return errors.New("failed (its output may hold a secret, and is not shown)")
		default:
			return errors.New(errtext.OneLine(text))
		}
	}
	return err
}

// limitedOutput keeps what a program prints. Of too much it keeps the beginning,
// and tells that it is full.
type limitedOutput struct {
	kept bytes.Buffer
	full func()
	over bool
}

func (l *limitedOutput) String() string { return strings.TrimSpace(l.kept.String()) }

func (l *limitedOutput) Write(b []byte) (int, error) {
	if l.kept.Len()+len(b) > maxHelperBytes {
		l.over = true
		l.full()
		return 0, errors.New("too much output")
	}
	return l.kept.Write(b)
}
