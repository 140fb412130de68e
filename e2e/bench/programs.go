package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// program is a command line.
type program []string

// carton is the command under test, through a door.
func (r *rig) carton(d door, args ...string) program {
	p := append(program{r.path("bin", "carton-oci")}, args...)
	if d.scheme == "http" {
		p = append(p, "--plain-http")
	}
	return append(p, "-q")
}

// oras is the oras command's way, of a folder.
func (r *rig) oras(d door, dir, verb, ref string) program {
	return program{r.path("bin", "oras"), fmt.Sprintf("-plain-http=%t", d.scheme == "http"), "-dir", dir, verb, ref}
}

// skopeo copies from one place to another.
func skopeo(from, to string) program {
	return program{"skopeo", "copy", "--quiet", "--src-tls-verify=false", "--dest-tls-verify=false", from, to}
}

// curl sends requests at once.
func curl(requests [][]string) program {
	p := program{"curl", "--parallel", "--parallel-immediate", "--parallel-max", "8"}
	for i, r := range requests {
		if i > 0 {
			p = append(p, "--next")
		}
		p = append(append(p, "--no-progress-meter", "--fail", "--http1.1"), r...)
	}
	return p
}

// gets asks for each member, in so many equal parts.
func (r *rig) gets(d door, m model, parts int64) program {
	var all [][]string
	for _, m := range m.members {
		for i := range parts {
			all = append(all, []string{
				d.url("/v2/org/carton/blobs/sha256:" + m.sum), "-o", r.path("out", fmt.Sprint(len(all))),
				"-r", fmt.Sprintf("%d-%d", i*m.size/parts, (i+1)*m.size/parts-1),
			})
		}
	}
	return curl(all)
}

// puts is curl with a model's members. An upload is opened for each before, and
// what is left completes them: that curl need not do this is in its favour.
func (r *rig) puts(d door, m model) contender {
	return contender{"curl", func() program {
		r.registry.fresh()
		var all [][]string
		for _, member := range m.members {
			resp, err := http.Post(r.registry.plain.url("/v2/org/curl/blobs/uploads/"), "", nil)
			check(err)
			resp.Body.Close()
			to, err := resp.Location()
			check(err)
			query := to.Query()
			query.Set("digest", "sha256:"+member.sum)
			// Without Expect: it would wait for the registry's word first.
			all = append(all, []string{
				d.url(to.Path + "?" + query.Encode()), "-T", filepath.Join(m.dir, member.path),
				"-H", "Expect:", "-H", "Content-Type: application/octet-stream", "-o", os.DevNull,
			})
		}
		return curl(all)
	}}
}

// pushes are the command with a carton and oras-go with the same as a folder.
func (r *rig) pushes(d door, m model, ready func()) []contender {
	return []contender{
		after(ready, ours, r.carton(d, "push", m.carton, d.host+"/org/carton:1")),
		after(ready, "oras-go", r.oras(d, m.dir, "push", d.host+"/org/oras:1")),
	}
}

// pulls are the command and oras-go with what was kept. To be ready is to have an
// empty folder for it.
func (r *rig) pulls(d door, ready func()) []contender {
	return []contender{
		after(ready, ours, r.carton(d, "pull", d.host+"/org/carton:1", "-o", r.path("out", "m.carton"))),
		after(ready, "oras-go", r.oras(d, r.path("out"), "pull", d.host+"/org/oras:1")),
	}
}

// keep puts a model into an empty registry: as a carton and as files.
func (r *rig) keep(d door, m model) {
	r.registry.fresh()
	for _, c := range r.pushes(d, m, func() {}) {
		r.output(c.start())
	}
}
