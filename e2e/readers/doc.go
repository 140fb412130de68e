// Package readers holds tests in which other people's programs read the files that
// --shard makes, and the GGUF files that are read here: Go modules, the hub's packages
// from npm, and llama.cpp as it is in node-llama-cpp. It is a module of its own, so
// that neither the library nor the other tests depend on those.
package readers
