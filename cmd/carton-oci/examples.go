package main

// helpExamples are what most people want of a command. They stand first in its
// help; a test holds them against the flags.
var helpExamples = map[string][]string{
	"push": {
		"carton-oci push m.carton ghcr.io/org/m:1",
		"carton-oci push ./model ghcr.io/org/m:1,latest --runner noop",
		"carton-oci push m.carton ghcr.io/org/m:1 --image --layers tar",
		"carton-oci push ghcr.io/org/m:1 registry.example/org/m:1",
	},
	"pull": {
		"carton-oci pull ghcr.io/org/m:1",
		"carton-oci pull ghcr.io/org/m:1 --unpack ./m",
		"carton-oci pull ghcr.io/org/m:1 --unpack ./m --folder model",
	},
	"pack": {
		"carton-oci pack model.pt --framework-version =2.0.1",
		"carton-oci pack ./model -o m.carton --runner noop",
	},
	"ls":      {"carton-oci ls ghcr.io/org/m:1"},
	"cat":     {"carton-oci cat ghcr.io/org/m:1 model/config.json"},
	"inspect": {"carton-oci inspect ghcr.io/org/m:1"},
	"tensors": {
		"carton-oci tensors m.carton '*.bias'",
		"carton-oci tensors ghcr.io/org/m:1 layers.0.weight -o weight.npy",
	},
	"diff":    {"carton-oci diff m.carton ghcr.io/org/m:1"},
	"verify":  {"carton-oci verify m.carton", "carton-oci verify ghcr.io/org/m:1 --links"},
	"image":   {"carton-oci image ghcr.io/org/m:1"},
	"resolve": {"carton-oci resolve -q ghcr.io/org/m:1"},
	"login":   {"carton-oci login ghcr.io", "carton-oci login ghcr.io -u NAME --password-stdin <token.txt"},
	"logout":  {"carton-oci logout ghcr.io"},
}
