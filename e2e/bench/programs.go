package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// The command lines that are compared.

// carton is the command under test, with a cache folder of its own.
func (r *rig) carton(args ...string) program {
	return program{
		path: filepath.Join(r.bin, "carton-oci"), args: append(args, "-q"), dir: r.dir,
		env: []string{"CARTON_OCI_CACHE=" + r.path("cache"), "HOME=" + r.path("home")},
	}
}

// forget empties the command's cache: it has never been here.
func (r *rig) forget() error { return os.RemoveAll(r.path("cache")) }

// oras is the oras command's way, of a folder.
func (r *rig) oras(dir string, args ...string) program {
	return program{path: filepath.Join(r.bin, "oras"), args: append([]string{"-dir", dir}, args...), dir: r.dir}
}

// transfer is one request of curl.
type transfer struct {
	method string
	url    string
	file   string // to send, or to write
	ranged string // "" or FIRST-LAST
}

// curlAll is curl with that many requests at once.
func (r *rig) curlAll(transfers []transfer, more ...string) program {
	args := []string{"--parallel", "--parallel-immediate", "--parallel-max", "8", "--no-progress-meter", "--fail"}
	for i, t := range transfers {
		if i > 0 {
			args = append(args, "--next", "--no-progress-meter", "--fail")
		}
		args = append(args, more...)
		switch {
		case t.method == http.MethodPut:
			// Without Expect: it would wait for the server's word first.
			args = append(args, "-T", t.file, "-H", "Expect:", "-H", "Content-Type: application/octet-stream", "-o", os.DevNull)
		case t.ranged != "":
			args = append(args, "-r", t.ranged, "-o", t.file)
		default:
			args = append(args, "-o", t.file)
		}
		args = append(args, t.url)
	}
	return program{path: r.curl, args: args, dir: r.dir}
}

// client is for what is done outside of the measurement.
func (r *rig) client() (*http.Client, error) {
	pem, err := os.ReadFile(r.server.CAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

// puts opens an upload for each member and returns the requests that complete
// them. That curl need not do this is in its favour.
func (r *rig) puts(ctx context.Context, base, dir string, members []member) ([]transfer, error) {
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var all []transfer
	for _, m := range members {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v2/org/curl/blobs/uploads/", nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			return nil, fmt.Errorf("open an upload: %s", resp.Status)
		}
		to, err := req.URL.Parse(resp.Header.Get("Location"))
		if err != nil {
			return nil, err
		}
		query := to.Query()
		query.Set("digest", "sha256:"+m.sum)
		to.RawQuery = query.Encode()
		all = append(all, transfer{method: http.MethodPut, url: to.String(), file: filepath.Join(dir, filepath.FromSlash(m.path))})
	}
	return all, nil
}

// gets returns the requests that fetch each member into a folder.
func gets(base, repository, dir string, members []member) []transfer {
	var all []transfer
	for i, m := range members {
		to := base + "/v2/" + repository + "/blobs/sha256:" + m.sum
		all = append(all, transfer{url: to, file: filepath.Join(dir, fmt.Sprint(i))})
	}
	return all
}

// parts returns the requests that fetch one member in as many equal parts.
func parts(base, repository, dir string, m member, n int64) []transfer {
	var all []transfer
	to := base + "/v2/" + repository + "/blobs/sha256:" + m.sum
	for i := range n {
		ranged := fmt.Sprintf("%d-%d", i*m.size/n, (i+1)*m.size/n-1)
		all = append(all, transfer{url: to, file: filepath.Join(dir, fmt.Sprint(i)), ranged: ranged})
	}
	return all
}

// must runs a program outside of the measurement.
func must(ctx context.Context, p program) error {
	out, err := p.command(ctx).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", p.path, strings.Join(p.args, " "), err, out)
	}
	return nil
}

// keep puts a model into the registry for pulls: as a carton and as files.
func (r *rig) keep(ctx context.Context, name string) error {
	if err := r.server.fresh(ctx); err != nil {
		return err
	}
	return errors.Join(
		must(ctx, r.carton("push", r.path(name+".carton"), r.server.Plain+"/org/carton:1", "--plain-http")),
		must(ctx, r.oras(r.path(name), "push", r.server.Plain+"/org/oras:1")),
	)
}
