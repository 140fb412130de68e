package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// proxyFor is http.ProxyFromEnvironment, which reaches localhost directly, for all
// names of this machine.
func proxyFor(req *http.Request) (*url.URL, error) {
	if httprange.IsLoopback(req.URL.Host) {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// ErrProxy: a proxy refuses to connect, and would again.
var ErrProxy = httprange.Final("proxy refuses")

// proxyAnswer tells what a proxy refuses from what may pass.
func proxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode < 400 || resp.StatusCode >= 500 {
		return nil // net/http has its own words for what is no success
	}
	return fmt.Errorf("%w: %s answered %d %s", ErrProxy, proxy.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
}

// checkProxies refuses what net/http can't read of the environment: it would go
// without a proxy, and say nothing.
func checkProxies() error {
	for _, names := range [][2]string{{"HTTP_PROXY", "http_proxy"}, {"HTTPS_PROXY", "https_proxy"}} {
		name := names[0]
		if os.Getenv(name) == "" {
			name = names[1]
		}
		value := os.Getenv(name)
		if value == "" || readableProxy(value) {
			continue
		}
		err := fmt.Errorf("%s: got %q, want http://host:port", name, secret.Redact(value))
		return hint.With(err, "a special character in a user name or password is written as %% and two hex digits")
	}
	return nil
}

// readableProxy reports whether net/http makes of a proxy's address what it says.
// A missing scheme is http.
func readableProxy(value string) bool {
	u, err := url.Parse(value)
	if !strings.Contains(value, "://") {
		if u, err = url.Parse("http://" + value); err != nil {
			return false
		}
	}
	if err != nil {
		return false
	}
	if u.User != nil {
		password, _ := u.User.Password()
		secret.AddLogin(u.User.Username(), password)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u.Hostname() != ""
	}
	return false
}
