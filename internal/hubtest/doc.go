// Package hubtest is a small hub of models for tests: correct where it is left
// alone, wrong where it is told to be, and counting what it is asked for and what
// it sends.
//
// It speaks the API of huggingface.co as its clients use it: revision, tree (in
// pages), paths-info, refs, resolve and raw. Small files come from the hub itself by
// a relative redirect, large ones from another host by signed addresses that it
// forgets. @huggingface/hub from npm takes it for a hub (make e2e-hub).
package hubtest
