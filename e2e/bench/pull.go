package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func pullLarge(r *rig) result {
	m, d := r.large(), r.registry.plain
	r.keep(d, m)
	res := r.compare(fmt.Sprintf("pull %s in 4 members", gib(r.size)), append(r.pulls(d, r.cleared),
		after(r.cleared, "curl", r.gets(d, m, 1)),
		after(r.cleared, "skopeo", skopeo("docker://"+d.host+"/org/carton:1", "oci:"+r.path("out", "layout")+":1")),
	)...)
	res.atMost(1.5, "≤ 1.5 × curl", "curl", "wall")
	res.atMost(1.5, "≤ 1.5 × curl, both until it is on disk", "curl", "on disk")
	res.atMost(1, "faster than oras-go", "oras-go", "wall")
	res.atMost(1, "faster than oras-go, both until it is on disk", "oras-go", "on disk")
	res.part(1.01, "≤ 1.01 × the size written", ours, r.size, "written")
	return res
}

// pullOlder pulls a model where an older one is, with other bytes in 1 of 4
// members: over the older file, over the older folder, and, if the command has
// --from, beside the older file.
func pullOlder(r *rig) result {
	old, d, file, folder := r.large(), r.registry.plain, r.path("out", "m.carton"), r.path("out", "model")
	r.keep(d, r.newer(old, 1))
	r.drop("changed")
	// A copy, as a user has it: with a second name, writing into it would change the
	// model.
	hasFile := func() { check(os.CopyFS(r.empty("out"), os.DirFS(filepath.Dir(old.carton)))) }
	hasFolder := func() { r.cleared(); check(os.CopyFS(folder, os.DirFS(old.dir))) }
	pull := func(more ...string) program {
		return r.carton(d, append([]string{"pull", d.host + "/org/carton:1", "--force"}, more...)...)
	}
	contenders := []contender{
		after(hasFile, ours+" file", pull("-o", file)),
		after(hasFolder, ours+" folder", pull("--unpack", folder)),
		after(hasFolder, "oras-go folder", r.oras(d, folder, "pull", d.host+"/org/oras:1")),
	}
	from := strings.Contains(r.output(r.carton(d, "pull", "--help")), " --from ")
	if from {
		contenders = append(contenders, after(hasFile, ours+" file, --from",
			pull("-o", r.path("out", "new.carton"), "--from", file)))
	}
	res := r.compare(fmt.Sprintf("pull %s over an older version, 1 of 4 members changed", gib(r.size)), contenders...)
	for _, m := range res.programs {
		if strings.HasPrefix(m.name, ours) {
			res.part(0.26, m.name+": 1/4 of the bytes received", m.name, r.size, "received")
		}
	}
	if !from {
		res.want(false, ours+" file, --from", "pull has no such flag")
	}
	return res
}

func pullSlow(r *rig) result {
	m, d := r.model("single", weights(1, r.size/2)), r.registry.slow
	r.keep(r.registry.plain, m)
	res := r.compare(fmt.Sprintf("pull 1 member of %s, each connection limited to 20 MB/s", gib(r.size/2)),
		append(r.pulls(d, r.cleared), after(r.cleared, "curl", r.gets(d, m, 8)))...)
	res.atMost(1.0/6, "≤ 1/6 of oras-go", "oras-go", "wall")
	r.drop("single")
	return res
}

func pullFar(r *rig) result {
	m, d := r.model("distant", weights(4, r.size/2)), r.registry.farTLS
	r.keep(r.registry.plain, m)
	res := r.compare(fmt.Sprintf("pull %s in 4 members over TLS, 50 ms away", gib(r.size/2)),
		append(r.pulls(d, r.cleared), after(r.cleared, "curl", r.gets(d, m, 1)))...)
	res.atMost(1.0/3, "≤ 1/3 of oras-go on HTTP/2", "oras-go", "wall")
	r.drop("distant")
	return res
}

func pullMany(r *rig) result {
	r.keep(r.registry.plain, r.many())
	res := r.compare("pull 10,000 members of 4 KiB", r.pulls(r.registry.plain, r.cleared)...)
	res.atMost(0.2, "≤ 1/5 of oras-go", "oras-go", "wall")
	return res
}
