package main

import "github.com/carton-oci/carton-oci/pkg/hint"

// commandNames are the flags and commands that do what the library's hints are
// about.
var commandNames = map[hint.Name]string{
	hint.Login:  "carton-oci login",
	hint.Pack:   "carton-oci pack",
	hint.Pull:   "carton-oci pull",
	hint.Push:   "carton-oci push",
	hint.Verify: "carton-oci verify",
	hint.Plain:  "ls, cat, inspect, tensors and verify",

	hint.AllowInvalid:     "--allow-invalid",
	hint.AllowLinkHosts:   "--allow-link-host",
	hint.AllowLinkRepos:   "--allow-link-repo",
	hint.BundleBelow:      "--bundle-below",
	hint.CAFile:           "--ca-file",
	hint.Compat:           "--compat",
	hint.Concurrency:      "--concurrency",
	hint.Force:            "--force",
	hint.FrameworkVersion: "--framework-version",
	hint.Image:            "--image",
	hint.ImageTag:         "--image-tag",
	hint.Insecure:         "--insecure",
	hint.Layers:           "--layers",
	hint.LeaveImage:       "--no-image",
	hint.LinkBase:         "--link-base",
	hint.Member:           "--member",
	hint.Model:            "--model",
	hint.NoClobber:        "--no-clobber",
	hint.Output:           "-o",
	hint.PackExclude:      "--exclude",
	hint.PackInclude:      "--include",
	hint.PackInvalid:      "--allow-invalid",
	hint.PlainHTTP:        "--plain-http",
	hint.Readme:           "--readme",
	hint.RegistryConfig:   "--registry-config",
	hint.Runner:           "--runner",
	hint.RunnerOpts:       "--opt",
	hint.SignForce:        "--force",
	hint.SignOutput:       "-o",
	hint.Signature:        "--signature",
	hint.Thin:             "--thin",
	hint.Unpack:           "--unpack",
	hint.Update:           "--update",
	hint.Wrap:             "--runner",
}
