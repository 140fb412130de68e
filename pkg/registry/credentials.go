package registry

import "context"

type repositoryKey struct{}

// withRepository tells a credential function which repository is meant.
func withRepository(ctx context.Context, repository string) context.Context {
	return context.WithValue(ctx, repositoryKey{}, repository)
}

// credentialError is a failure to find, keep or remove credentials.
type credentialError struct{ err error }

func (e *credentialError) Error() string   { return e.err.Error() }
func (e *credentialError) Unwrap() []error { return []error{ErrCredentials, e.err} }
