package client

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/carton-oci/carton-oci/internal/localfile"
	"github.com/carton-oci/carton-oci/internal/place"
	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
	"github.com/carton-oci/carton-oci/pkg/signature"
)

// SignatureExt ends the name of the file with a carton's signature, which lies beside
// it: m.carton.sig, and folder.sig of a folder.
const SignatureExt = ".sig"

// signatureBeside names the file beside a carton or folder that holds its signature:
// of a folder that has no name of its own where it is named, by the name that it has.
func signatureBeside(path string) (string, error) {
	path = filepath.Clean(path)
	if base := filepath.Base(path); base == "." || base == ".." {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		path = abs
	}
	return path + SignatureExt, nil
}

// leaveSignature puts the model's signature that was verified, where one was wanted,
// beside what was pulled: who gets it on a disk can tell whose model it is. A part of a
// model has none.
func leaveSignature(src *opened, opts PullOptions, result *PullResult) error {
	if src.modelSigned == nil || opts.Stream != nil || opts.Folder != "" || len(opts.Include)+len(opts.Exclude) > 0 {
		return nil
	}
	name, err := signatureBeside(result.Path)
	if err == nil {
		_, err = writeSmall(name, src.modelSigned, opts.Force)
	}
	switch {
	case errors.Is(err, place.ErrExist), errors.Is(err, carton.ErrExist):
		result.SignatureInTheWay = name
		return nil
	case err != nil:
		return fmt.Errorf("%s is complete; its signature: %w", result.Path, err)
	}
	result.Signature = name
	return nil
}

// writeSmall puts a small file in its place, and reports whether it was there.
func writeSmall(name string, content []byte, replace bool) (existed bool, err error) {
	if there, err := localfile.Read(name, int64(len(content))); err == nil && bytes.Equal(there, content) {
		return true, nil
	}
	if err := replaceable(name); replace && err != nil {
		return false, err
	}
	f, err := place.Create(name, place.Options{Replace: replace})
	if err != nil {
		return false, err
	}
	if _, err = f.WriteAt(content, 0); err == nil {
		err = f.Commit()
	}
	if err != nil {
		return false, errors.Join(err, f.Discard())
	}
	return false, nil
}

// replaceable wants a file that exists to be a signature: no other is replaced by one,
// and least of all the model that is signed, or the key.
func replaceable(name string) error {
	raw, err := localfile.Read(name, signature.MaxBundleBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = signature.Parse(raw)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w, and holds no signature that could be replaced by another", name, carton.ErrExist)
		return hint.With(err, "%s FILE writes another file", hint.SignOutput)
	}
	return nil
}

// readSignature reads a file with a signature.
func readSignature(name string, m *carton.Manifest) ([]byte, error) {
	raw, err := localfile.Read(name, signature.MaxBytesOf(m))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, signature.ErrNotSigned)
	}
	return raw, err
}
