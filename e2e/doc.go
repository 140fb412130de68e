// Package e2e runs the built command, and a few calls of the library, against
// real servers. It is a module of its own, so that a registry's hundred
// dependencies stay out of the library's.
//
// Each file of tests is one promise: see the first comment of each.
package e2e
