package registry

import "strings"

// behaviour is what is known of a hosted registry and can't be learnt by asking.
type behaviour struct {
	host    string // the host, or where it begins with a dot, the end of it
	resumes bool   // the status of an upload can be trusted
	source  string
}

// behaviours, the first that matches.
var behaviours = []behaviour{
	{".amazonaws.com", false, "ECR: the Range of a status does not move with what was sent"},
	{"public.ecr.aws", false, "ECR: as above"},
	{".pkg.dev", false, "Artifact Registry: an upload's Location is good for one request"},
	{".gcr.io", false, "Container Registry: as above"},
	{"gcr.io", false, "Container Registry: as above"},
}

// hostOf returns what is known of a host, with the port where there is one.
func hostOf(host string) behaviour {
	for _, b := range behaviours {
		if host == b.host || b.host[0] == '.' && strings.HasSuffix(host, b.host) {
			return b
		}
	}
	return behaviour{resumes: true}
}
