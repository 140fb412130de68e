package pack

import (
	"path"
	"strings"

	"github.com/carton-oci/carton-oci/pkg/carton"
	"github.com/carton-oci/carton-oci/pkg/hint"
)

// secrets are files that programs keep credentials in, by the end of their path
// in lower case; * stands for anything within a component. In a model's folder
// they are there by mistake, and what was pushed can't be taken back: a folder
// that holds one is refused. Who means a file names it instead of its folder, or
// allows it (Options.AllowInvalid).
var secrets = []string{
	".env", ".env.local", ".env.*.local", ".env.dev", ".env.development", ".env.prod", ".env.production",
	".env.staging",
	".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc", ".pgpass", ".htpasswd", ".vault-token",
	".aws/credentials", ".docker/config.json", ".kube/config", ".kaggle/kaggle.json", "kaggle.json",
	".huggingface/token", "huggingface/token", "huggingface/stored_tokens",
	"application_default_credentials.json", ".azure/accesstokens.json", ".azure/msal_token_cache.json", ".s3cfg",
	".boto",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", ".ssh/*", ".gnupg/*",
}

// isSecret reports whether a file of a folder is one that holds credentials.
func isSecret(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	for _, s := range secrets {
		n := strings.Count(s, "/") + 1
		if len(parts) < n {
			continue
		}
		if ok, _ := path.Match(s, strings.Join(parts[len(parts)-n:], "/")); ok {
			return true
		}
	}
	return false
}

// refuseSecrets refuses the files among names that hold credentials, and warns of
// them where they are allowed.
func (p *packer) refuseSecrets(files []*file) error {
	for _, f := range files {
		if !isSecret(f.name) {
			continue
		}
		err := &carton.Error{
			Path: f.name, Kind: carton.ErrInsecurePath,
			Msg: "is where credentials are kept, and would be published with the model",
		}
		if !p.opts.AllowInvalid {
			return hint.With(err, "take it out of the folder; %s packs it all the same", hint.PackInvalid)
		}
		p.warnf("%v", err)
	}
	return nil
}
