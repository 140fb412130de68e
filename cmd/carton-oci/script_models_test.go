package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/carton-oci/carton-oci/internal/modeltest"
)

// The commands of scripts that write files as other programs do.

func scriptTorchScript(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), modeltest.TorchScript("model"), 0o644))
}

func scriptWasm(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(modeltest.Wasm), 0o644))
}

func scriptReference(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), modeltest.Carton(state(ts).tb), 0o644))
}
