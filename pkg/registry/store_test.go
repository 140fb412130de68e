package registry

import (
	"testing"

	"github.com/carton-oci/carton-oci/internal/registrytest"
	"github.com/carton-oci/carton-oci/pkg/layout"
	"github.com/carton-oci/carton-oci/pkg/layout/storetest"
)

// TestStore runs what every layout.Store has to pass, against registries of
// several kinds, inside a struct: it keeps what the repository promises.
func TestStore(t *testing.T) {
	for name, conf := range map[string]registrytest.Config{
		"plain":  {},
		"TLS":    {TLS: true, HTTP2: true},
		"token":  {Auth: registrytest.Auth{Users: twoUsers, Bearer: true}},
		"Quay":   {Quirks: registrytest.Quirks{QuayRange: true}},
		"GAR":    {Quirks: registrytest.Quirks{OneShot: true, RelativeLocation: true, NoHead: 405, NoManifestHead: 405}},
		"Harbor": {Quirks: registrytest.Quirks{NoHead: 401, CDN: true, NoDigestHeader: true}},
		"S3":     {Quirks: registrytest.Quirks{CDN: true, NewLocation: true}},
		// With lists of referrers, and with tags a few at a time.
		"zot":  {Quirks: registrytest.Quirks{Referrers: true, ReferrersPage: 1, TagsPage: 5}},
		"GHCR": {Quirks: registrytest.Quirks{ReferrersLost: true, NoDelete: 405}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.TestStore(t, func() layout.Store {
				reg := registrytest.New(t, conf)
				opts := Options{Insecure: true, Credential: static("u", "p"), StateDir: t.TempDir()}
				return struct{ layout.Store }{dial(t, reg, "org/m", opts)}
			})
		})
	}
}
