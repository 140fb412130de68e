package main

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/carton-oci/carton-oci/pkg/client"
	"github.com/carton-oci/carton-oci/pkg/policy"
	"github.com/carton-oci/carton-oci/pkg/progress"
	"github.com/carton-oci/carton-oci/pkg/registry"
)

// session is one run of one command: what the shared flags and the environment
// say, and where to print.
type session struct {
	*printer
	client      *client.Client
	options     client.Options // of client
	concurrency int
	progress    progress.Func         // nil unless a display shows it
	kept        *registry.Credentials // those of the user's files
	given       auth.CredentialFunc   // those of the command line, else nil

	trace   *trace // of --debug, else nil
	display *display
	showing bool // whether progress may be shown

	// What flags say that is no option of the client.
	format, username, registryConfig string
	noProgress, debug, passwordStdin bool
	retriesMost                      int

	retries retries
	drawing atomic.Bool // a display shows the retries
}

// command makes an action of a function, with the session made ready for it.
func (s *session) command(run func(*cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		err := s.start(c)
		if err == nil {
			err = wantUsage(c)
		}
		if err == nil {
			err = run(c)
			s.stopProgress()
		}
		if s.trace != nil {
			s.trace.end()
		}
		return err
	}
}

// start makes ready what the shared flags ask for.
func (s *session) start(c *cli.Context) (err error) {
	if err := valuesError(c); err != nil {
		return err
	}
	s.json = s.format == "json"
	s.showing = !s.quiet && !s.noProgress
	if lookupFlag(c.Command.Flags, "plain-http") == nil {
		return nil // a command that reaches nothing
	}
	r := &s.options.Registry
	if r.KeyFile != "" && r.CertFile == "" {
		return usagef(c.Command.Name, "--key-file needs --cert-file")
	}
	r.Policy.Attempts = s.retriesMost + 1
	if s.showing {
		r.Policy.Retrying = s.retrying
	}
	if s.debug {
		s.trace = &trace{w: s.err}
		r.Wrap = s.trace.wrap
	}
	r.UserAgent, r.StateDir, r.Credential = "carton-oci/"+moduleVersion(), cacheDir(), s.credential
	s.kept = registry.DockerCredentials(s.registryConfig)
	s.options.Policy = policy.Lazily()
	s.client, err = client.New(s.options)
	return err
}

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
