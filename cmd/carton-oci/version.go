package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func (s *session) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print what this program was built from",
		Flags: s.flags(nil),
		Action: s.command(func(*cli.Context) error {
			if s.json {
				s.object(versionInfo())
			} else {
				s.printVersion()
			}
			return nil
		}),
	}
}

func (p *printer) printVersion() {
	v := versionInfo()
	p.linef("carton-oci %s %s %s", v.Version, v.Go, v.Platform)
}

// version is what `version --format json` prints.
type version struct {
	Version  string `json:"version"`            // the module's, "(devel)" of a working tree
	Revision string `json:"revision,omitempty"` // the commit, where it is known
	Modified bool   `json:"modified,omitempty"` // built from files that are not in that commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionInfo() version {
	v := version{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func moduleVersion() string { return versionInfo().Version }
