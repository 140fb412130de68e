//go:build !linux

package lan

import (
	"errors"
	"testing"
)

type namespace struct{}

func newNamespace(testing.TB) (*namespace, error) { return nil, errors.ErrUnsupported }

func (*namespace) path() string { return "" }

func (*namespace) do(f func()) { f() }
