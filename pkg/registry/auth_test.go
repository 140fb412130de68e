package registry

import (
	"context"

	"oras.land/oras-go/v2/registry/remote/auth"
)

func static(user, password string) auth.CredentialFunc {
	return func(context.Context, string) (auth.Credential, error) {
		return auth.Credential{Username: user, Password: password}, nil
	}
}
