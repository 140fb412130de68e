package main

import (
	"embed"
	"fmt"

	"github.com/urfave/cli/v2"
)

// The scripts know how a shell asks for completions and takes them; what a word can
// be, they ask the program: see complete.go.
//
//go:embed completion/*
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish", "powershell"}

func (s *session) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes words in a shell",
		ArgsUsage: "SHELL",
		UsageText: "carton-oci completion bash",
		Description: `SHELL is bash, zsh, fish or powershell. Where each shell wants it:
  eval "$(carton-oci completion bash)"          in ~/.bashrc
  source <(carton-oci completion zsh)           in ~/.zshrc, behind compinit
  carton-oci completion fish | source           in ~/.config/fish/config.fish
  carton-oci completion powershell | Out-String | Invoke-Expression
                                                in $PROFILE

It completes commands, flags and their values, files, tags ("carton-oci pull
host/repo:" asks the registry, for two seconds at most), the members of a
carton, its tensors, and the hosts that you are logged in to.`,
		Flags:  s.flags(nil),
		Action: s.command(s.runCompletion),
	}
}

func (s *session) runCompletion(c *cli.Context) error {
	shell := c.Args().Get(0)
	if err := oneOf(shell, shells); err != nil {
		return usagef("completion", "%v", err)
	}
	script, err := completionScripts.ReadFile("completion/" + shell)
	if err != nil {
		return fmt.Errorf("completion: %w", err)
	}
	s.write(string(script))
	return nil
}
