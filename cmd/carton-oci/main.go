// Command carton-oci pushes and pulls cartons, one-file machine-learning
// models, to and from OCI container registries. Run carton-oci --help.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/carton-oci/carton-oci/internal/secret"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// memoryAim is how much memory, in bytes, the program asks the garbage collector
// to keep it within. What it needs for a transfer is far less; but what hostile
// input makes it use for a moment would else be given back only when there is as
// much again.
const memoryAim = 160 << 20

// garbageAim is how much garbage, in percent of what is in use, may wait for the
// collector: half of Go's default. A transfer makes little of it, and its peak
// shall not depend on for how long it does.
const garbageAim = 50

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryAim)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbageAim)
	}
	log.SetOutput(io.Discard) // net/http's, which quotes what a server sends unasked
	os.Exit(run(os.Args[1:]))
}

// run is main without the exit. Every way out of the program leads through its
// end, but for a second signal.
func run(args []string) int {
	ctx, stop := withSignals(context.Background())
	defer stop()

	for _, word := range args {
		_, value, _ := strings.Cut(word, "=")
		secret.AddTyped(word)
		secret.AddTyped(value)
	}
	out := &printer{out: os.Stdout, err: &screen{out: os.Stderr}}
	session := &session{printer: out}
	app := newApp(session)
	var err error
	switch word := append(args, "")[0]; word {
	case completeWord:
		session.complete(ctx, app, args[1:])
		return exitOK
	case pagesWord:
		err = writePages(app, args[1:])
	default:
		var words []string
		if words, err = reorder(app, args); err == nil {
			err = app.RunContext(ctx, append([]string{app.Name}, words...))
		}
	}
	if err == nil {
		err = out.failed
	}
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		out.error(interrupted(err))
		return exitInterrupted
	}
	if !errors.Is(err, errSilent) {
		out.error(err)
	}
	return exitCode(err)
}

var errInterrupted = errors.New("interrupted")

// interrupted returns what there is to say of a command that was: the hints of
// err tell what of it can be gone on with.
func interrupted(err error) error {
	return hint.Add(errInterrupted, hint.Of(err)...)
}

// withSignals returns a context that the first SIGINT or SIGTERM cancels, so
// that what was begun is cleaned up. The second one ends the program at once.
func withSignals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
