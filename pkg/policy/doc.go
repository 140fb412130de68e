// Package policy says of which repositories whose signatures are wanted: a file of the
// user's, or of whoever runs the machine, that no flag overrides.
//
//	[[repository]]
//	name = "ghcr.io/org"              # a repository, and all below it
//	keys = ["org.pub"]                # beside this file
//
//	[[repository]]
//	name = "registry.example"         # a registry
//	certificates = ["/etc/pki/models.pem"]
//	identity = "release@example.com"  # what the signer's certificate must name
//
//	[[repository]]
//	name = "registry.example/scratch"
//	unsigned = true
//
//	[[repository]]
//	name = "*"                        # all others
//	keys = ["org.pub", "vendor.pub"]  # any of them
//
// # Rules that this package keeps
//
// Of all names that a repository is called by or lies below, the longest decides, by
// whole parts: "ghcr.io/org" is about ghcr.io/org/m and not about ghcr.io/organ. Where
// none is, nothing is asked.
//
// What can't be read is no policy of nothing: a file that is not there although
// somebody named it, one without a rule (most likely it was not written whole), an
// unknown key, a name twice, a key file that is missing or holds no key are errors, and
// who asks gets the error.
//
// A registry has one name: case, a dot at its end and the ports of HTTP and HTTPS make no
// other. Under its address, or an alias in the DNS, it is another registry: who wants to
// be asked of everything has a rule for "*".
package policy
