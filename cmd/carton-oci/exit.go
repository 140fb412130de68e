package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/links"
	"github.com/carton-oci/carton-oci/pkg/location"
	"github.com/carton-oci/carton-oci/pkg/policy"
	"github.com/carton-oci/carton-oci/pkg/registry"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// The exit codes. Scripts depend on them: they never change their meaning.
const (
	exitOK          = 0   // done
	exitFailed      = 1   // failed, for a reason that none of the others names
	exitUsage       = 2   // wrong usage: a file that is named and not there is, too
	exitContent     = 3   // content does not match its hash or breaks the format
	exitNotFound    = 4   // not found: a tag, an artifact, a member
	exitNotAllowed  = 5   // not allowed, or not signed by whom was asked for
	exitInterrupted = 130 // interrupted by a signal, as shells count it
)

// kinds says which errors mean which exit code. The first that matches counts:
// a carton that lacks a member breaks the format, and only then is something
// not found.
var kinds = []struct {
	code int
	errs []error
}{
	{exitInterrupted, []error{context.Canceled}},
	{exitFailed, []error{registry.ErrTooLarge}}, // a carton is none the worse for it
	{exitUsage, []error{errUsage, location.ErrLocation, path.ErrBadPattern, signature.ErrKey, policy.ErrPolicy}},
	{exitNotAllowed, []error{
		signature.ErrNotSigned, signature.ErrSigner, signature.ErrModel, signature.ErrPredicate, signature.ErrExpired,
		signature.ErrKeyless, signature.ErrFormat, signature.ErrLimit, signature.ErrPassword,
	}},
	{exitContent, []error{
		carton.ErrFormat, carton.ErrVersion, carton.ErrChecksum, carton.ErrInsecurePath, carton.ErrLimit,
		layout.ErrFormat, layout.ErrDigest, layout.ErrLimit,
	}},
	{exitNotAllowed, []error{registry.ErrUnauthorized, registry.ErrDenied, links.ErrNotAllowed, fs.ErrPermission}},
	{exitNotFound, []error{layout.ErrNotFound, fs.ErrNotExist}},
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	for _, k := range kinds {
		if k.code == exitNotFound && isMissingFile(err) {
			return exitUsage
		}
		for _, target := range k.errs {
			if errors.Is(err, target) {
				return k.code
			}
		}
	}
	return exitFailed
}

// isMissingFile reports whether a file on this machine is not there. A script that
// makes what a registry lacks must not take a name that was mistyped for that.
func isMissingFile(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && errors.Is(file, fs.ErrNotExist)
}

// codedError is an error with an exit code of its own.
type codedError struct {
	error
	code int
}

func (e *codedError) Unwrap() error { return e.error }

// withCode makes err end the program with this exit code.
func withCode(code int, err error) error { return &codedError{err, code} }

// errSilent is an error of which there is nothing to print.
var errSilent = errors.New("nothing more to say")

// errUsage is wrapped by every error that is about the command line itself.
var errUsage = errors.New("wrong usage")

// usageError makes any error one about the command line.
type usageError struct{ error }

func (e *usageError) Is(target error) bool { return target == errUsage }
func (e *usageError) Unwrap() error        { return e.error }

// usagef returns an error about the command line of the command called name,
// "" where the line names none.
func usagef(name, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if name != "" {
		text = name + ": " + text
	}
	return &usageError{errors.New(text)}
}

// listedError is an error whose parts have been printed, a line each.
type listedError struct {
	text string
	err  error
}

func (e *listedError) Error() string { return e.text }
func (e *listedError) Unwrap() error { return e.err }

// withHint attaches what to do about err.
func withHint(err error, format string, args ...any) error { return hint.With(err, format, args...) }
