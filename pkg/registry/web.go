package registry

import (
	"crypto/x509"
	"net/http"
)

// WebClient returns a client for addresses that are no registry's: with the same
// certificates and proxy as for blobs, and without credentials. It follows
// redirects as far as a registry's are followed, never from https to http.
func (c *Client) WebClient() *http.Client {
	return &http.Client{Transport: c.blob, CheckRedirect: checkRedirect}
}

// RootCAs returns the authorities that [Options] CAFile adds to the system's, nil
// for the system's alone.
func (c *Client) RootCAs() *x509.CertPool {
	if c.opts.CAFile == "" {
		return nil
	}
	conf, err := c.opts.tlsConfig()
	if err != nil {
		return nil // NewClient has read the same file
	}
	return conf.RootCAs
}
