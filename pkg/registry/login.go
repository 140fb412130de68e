package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// Login asks a registry whether cred is good, and keeps it where it is, under the
// name that a [Reference] calls the registry by. The
// warning, "" where there is none, says that a password lies unencrypted in a
// file. Credentials that the registry refuses are [ErrUnauthorized].
func (c *Client) Login(
	ctx context.Context, store *Credentials, registry string, cred auth.Credential,
) (warning string, err error) {
	if err := checkHost(registry); err != nil {
		return "", badReference(registry, "%v", err)
	}
	registry = userHost(registry)
	secret.Add(cred.AccessToken, cred.RefreshToken)
	secret.AddLogin(cred.Username, cred.Password)
	if err := c.tryCredential(ctx, registry, cred); err != nil {
		return "", err
	}
	return store.put(ctx, registry, cred)
}

// tryCredential sends cred to the registry's front door.
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#endpoints
func (c *Client) tryCredential(ctx context.Context, registry string, cred auth.Credential) error {
	host := c.endpoint(apiHost(registry))
	scheme, err := c.reach(ctx, host)
	if err != nil {
		return err
	}
	var used atomic.Bool
	client, _, _ := c.authClients(host, "")
	client.Credential = func(_ context.Context, hostport string) (auth.Credential, error) {
		if hostport != host.host {
			return auth.EmptyCredential, nil
		}
		used.Store(true)
		return cred, nil
	}
	front := &url.URL{Scheme: scheme, Host: host.host, Path: "/v2/"}
	err = ping(ctx, client, host, front, nil)
	if err == nil && !used.Load() && cred.Username != "" {
		// It lets anybody in; what it thinks of these credentials is yet unsaid.
		err = ping(ctx, client, host, front, &cred)
	}
	return adviseLogin(err)
}

// adviseLogin takes from the error of a login the hint to log in.
func adviseLogin(err error) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized &&
		refused.Status != http.StatusForbidden {
		return err
	}
	return hint.With(refused,
		"check the user name and the password; many registries want an access token in place of the password")
}

// ping asks the registry's front door, with a password where there is one.
func ping(ctx context.Context, client *auth.Client, host *endpoint, u *url.URL, password *auth.Credential) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	if password != nil {
		req.SetBasicAuth(password.Username, password.Password)
	}
	resp, err := client.Do(req)
	if err != nil {
		return host.requestError(err)
	}
	if resp.StatusCode != http.StatusOK {
		return host.answerError(resp)
	}
	return resp.Body.Close()
}

// put keeps a credential: with the helper that the file names for the host,
// else in the file, which only its owner can read then.
func (c *Credentials) put(ctx context.Context, host string, cred auth.Credential) (warning string, err error) {
	conf, err := c.read()
	if err != nil {
		return "", err
	}
	if c.file == "" {
		return "", failCredentials("store credentials: there is no home folder, and neither DOCKER_CONFIG nor " +
			"REGISTRY_AUTH_FILE is set")
	}
	if helper := conf.helper(host); helper != "" {
		_, err := runHelper(ctx, helper, "store", c.account(host), cred)
		return "", err
	}
	if strings.Contains(cred.Username, ":") {
		return "", failCredentials("store credentials for %s: got a user name with a colon, which the file can't hold",
			host)
	}
	store, err := c.open()
	if err != nil {
		return "", err
	}
	if err := store.Put(ctx, c.account(host), cred); err != nil {
		return "", failCredentials("store credentials for %s: %w", host, err)
	}
	return fmt.Sprintf("the credentials lie unencrypted in %s; a credential helper would keep them safer", c.file), nil
}

// Logout removes what is kept for a registry. It returns false where that was
// nothing.
func (c *Credentials) Logout(ctx context.Context, registry string) (bool, error) {
	conf, err := c.read()
	if err != nil {
		return false, err
	}
	host := userHost(registry)
	removed := false
	if helper := conf.helper(host); helper != "" {
		cred, err := runHelper(ctx, helper, "get", c.account(host), auth.EmptyCredential)
		if err == nil && cred != auth.EmptyCredential {
			_, err = runHelper(ctx, helper, "erase", c.account(host), auth.EmptyCredential)
			removed = err == nil
		}
		if err != nil {
			return false, err
		}
	}
	for key := conf.find(host, ""); key != ""; key = conf.find(host, "") {
		store, err := c.open()
		if err != nil {
			return removed, err
		}
		if err := store.Delete(ctx, key); err != nil {
			return removed, failCredentials("remove credentials for %s: %w", host, err)
		}
		delete(conf.Auths, key)
		removed = true
	}
	return removed, nil
}
