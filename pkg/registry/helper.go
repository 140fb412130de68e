package registry

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/carton-oci/carton-oci/internal/hint"
	"github.com/carton-oci/carton-oci/internal/httprange"
)

// helperTimeout is how long a helper program may take. Some ask a person.
var helperTimeout = 30 * time.Second

// helperRE is what a helper may be called: no path.
var helperRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// runHelper runs docker-credential-NAME: "get", "store" or "erase". Where a
// helper does not end when it is told to, it is left alone.
// https://docs.docker.com/reference/cli/docker/login/#credential-helper-protocol
func runHelper(ctx context.Context, name, action, account string, cred auth.Credential) (auth.Credential, error) {
	program := "docker-credential-" + name
	if !helperRE.MatchString(name) {
		return auth.EmptyCredential, failCredentials("%s credentials for %s: got the helper %q, want a name", action, account, name)
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	type result struct {
		cred auth.Credential
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		store := credentials.NewNativeStore(name)
		switch action {
		case "get":
			r.cred, r.err = store.Get(ctx, account)
		case "store":
			r.err = store.Put(ctx, account, cred)
		default:
			r.err = store.Delete(ctx, account)
		}
		done <- r
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	if r.err == nil {
		return r.cred, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return auth.EmptyCredential, ctx.Err()
	}
	err := fmt.Errorf("%s credentials for %s: %s: %s", action, account, program, helperReason(ctx, r.err))
	return auth.EmptyCredential, &credentialError{hint.With(err, "the file that names this helper is Docker's config.json, or what --registry-config says")}
}

// helperReason says what went wrong with a helper, without what may be a secret.
func helperReason(ctx context.Context, err error) string {
	text := err.Error()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", helperTimeout)
	case errors.Is(err, exec.ErrNotFound):
		return "there is no such program"
	case strings.ContainsAny(text, "{}") || strings.Contains(strings.ToLower(text), "secret"):
		return "failed (its output may hold a secret, and is not shown)"
	}
	return httprange.Printable(text)
}
