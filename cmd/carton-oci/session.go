package main

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/internal/httprange"
	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// session is one run of one command: what the shared flags and the environment
// say, and where to print.
type session struct {
	*printer
	client      *client.Client
	registry    registry.Options // of client
	concurrency int
	progress    progress.Func         // nil unless a display shows it
	kept        *registry.Credentials // those of the user's files
	given       auth.CredentialFunc   // those of the command line, else nil

	trace   *trace // of --debug, else nil
	display *display
	showing bool // whether progress may be shown
	debug   bool // lists are not cut short

	retries retries
	drawing atomic.Bool // a display shows the retries
}

// command makes an action of a function that takes a session.
func command(out *printer, run func(*cli.Context, *session) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		s, err := newSession(c, out)
		if err != nil {
			return err
		}
		err = run(c, s)
		s.stopProgress()
		if s.trace != nil {
			s.trace.end()
		}
		return err
	}
}

// newSession reads the shared flags and the environment.
func newSession(c *cli.Context, out *printer) (*session, error) {
	format, err := oneOf(c, "format", "text", "json")
	if err != nil {
		return nil, err
	}
	out.json, out.quiet = format == "json", c.Bool("quiet")
	s := &session{printer: out, debug: c.Bool("debug"), showing: !out.quiet && !c.Bool("no-progress")}
	if !has(c, "plain-http") {
		return s, nil
	}
	s.kept, s.concurrency = registry.DockerCredentials(c.String("registry-config")), c.Int("concurrency")
	s.registry = registry.Options{
		PlainHTTP:  c.Bool("plain-http"),
		Insecure:   c.Bool("insecure"),
		CAFile:     c.String("ca-file"),
		CertFile:   c.String("cert-file"),
		KeyFile:    c.String("key-file"),
		UserAgent:  "carton-oci/" + moduleVersion(),
		Policy:     registry.Policy{Stall: c.Duration("stall-timeout"), Attempts: c.Int("retries") + 1},
		StateDir:   cacheDir(),
		Credential: s.credential,
	}
	opts := client.Options{AllowLinkHosts: c.StringSlice("allow-link-host"), AllowLinkRepos: c.StringSlice("allow-link-repo")}
	if s.registry.KeyFile != "" && s.registry.CertFile == "" {
		return nil, usagef(c.Command.Name, "--key-file needs --cert-file")
	}
	for _, host := range opts.AllowLinkHosts {
		if err := httprange.CheckAllow(host); err != nil {
			return nil, usagef(c.Command.Name, "--allow-link-host: got %s, want HOST or HOST:PORT", quoted(host))
		}
	}
	for _, repo := range opts.AllowLinkRepos {
		if ref, err := registry.ParseReference(repo); err != nil || ref.Target() != "" {
			return nil, usagef(c.Command.Name, "--allow-link-repo: got %s, want HOST/REPOSITORY", quoted(repo))
		}
	}
	if c.Int("retries") < 0 {
		return nil, usagef(c.Command.Name, "--retries: got %d, want 0 or more", c.Int("retries"))
	}
	if s.showing {
		s.registry.Policy.Retrying = s.retrying
	}
	if s.registry.Policy.Stall < time.Second {
		return nil, usagef(c.Command.Name, "--stall-timeout: got %v, want 1s or more", s.registry.Policy.Stall)
	}
	if c.IsSet("chunk-size") {
		if s.registry.ChunkSize, err = parseSize(c.String("chunk-size")); err != nil || s.registry.ChunkSize < minChunk {
			return nil, usagef(c.Command.Name, "--chunk-size: got %s, want 1MB or more", quoted(c.String("chunk-size")))
		}
	}
	if has(c, "concurrency") && s.concurrency < 1 {
		return nil, usagef(c.Command.Name, "--concurrency: got %d, want 1 or more", s.concurrency)
	}
	if c.Bool("debug") {
		s.trace = &trace{w: out.err}
		s.registry.Wrap = s.trace.wrap
	}
	opts.Registry = s.registry
	s.client, err = client.New(opts)
	return s, err
}

// minChunk is the smallest chunk, in bytes, that is worth a request.
const minChunk = 1_000_000

// has reports whether the command has a flag at all.
func has(c *cli.Context, name string) bool { return lookupFlag(c.Command.Flags, name) != nil }

// cacheDir returns where uploads under way are remembered, "" for nowhere.
func cacheDir() string {
	if dir, ok := os.LookupEnv("CARTON_OCI_CACHE"); ok {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "carton-oci")
}

// created returns the time that SOURCE_DATE_EPOCH gives, the zero time where it
// is not set.
// https://reproducible-builds.org/specs/source-date-epoch/
func created() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 253402300799 { // the end of the year 9999
		return time.Time{}, usagef("", "SOURCE_DATE_EPOCH: got %s, want seconds since 1970", quoted(text))
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// retrying tells of a wait for another attempt, on the display or, where no
// command shows one, in a line.
func (s *session) retrying(r registry.Retry) {
	s.retries.add(r, time.Now())
	if !s.drawing.Load() {
		if text := s.retries.news(time.Now()); text != "" {
			s.sayf("", "%s", text)
		}
	}
}

// showProgress shows how far the command is until stopProgress.
func (s *session) showProgress(verb string) {
	if s.showing {
		s.display = startDisplay(s.err, verb, &s.retries)
		s.drawing.Store(s.display.screen != nil)
		s.progress = s.display.report
	}
}

func (s *session) stopProgress() {
	if s.display != nil {
		s.drawing.Store(false)
		s.display.stop()
		s.display = nil
	}
}
