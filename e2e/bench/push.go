package main

import (
	"fmt"
	"time"
)

func pushCold(r *rig) result {
	m, d, layout := r.large(), r.registry.plain, "oci:"+r.path("layout")+":1"
	r.output(r.carton(d, "push", m.carton, layout))
	res := r.compare(fmt.Sprintf("push %s in 4 members, cold", gib(r.size)), append(r.pushes(d, m, r.fresh),
		r.puts(d, m),
		after(r.fresh, "skopeo", skopeo(layout, "docker://"+d.host+"/org/skopeo:1")),
	)...)
	res.atMost(1.10, "≤ 1.10 × curl", "curl", "wall")
	res.atMost(1, "faster than oras-go", "oras-go", "wall")
	r.drop("layout")
	return res
}

func pushAgain(r *rig) result {
	m, d := r.large(), r.registry.plain
	r.keep(d, m)
	res := r.compare(fmt.Sprintf("push %s again, unchanged", gib(r.size)), r.pushes(d, m, func() {})...)
	// What is read are its configuration, the zip's directory, MANIFEST, carton.toml
	// and answers: far less than the smallest of the members.
	most := res.program(ours).of("read").most
	res.want(most < 1<<20, "no member's bytes read", fmt.Sprintf("%.0f kB read, all calls", most/1e3))
	res.atMost(1.0/20, "≤ 1/20 of oras-go", "oras-go", "wall")
	return res
}

func pushChanged(r *rig) result {
	m, d := r.large(), r.registry.plain
	r.keep(d, m)
	// Each run changes the member anew: what the registry has, nobody sends.
	seed := uint64(time.Now().UnixNano())
	changed := r.newer(m, seed)
	res := r.compare(fmt.Sprintf("push %s with 1 of 4 members changed", gib(r.size)), r.pushes(d, changed, func() {
		seed++
		r.newer(m, seed)
	})...)
	res.part(0.26, "1/4 of the bytes sent", ours, r.size, "sent")
	res.part(0.26, "1/4 of the bytes read", ours, r.size, "read")
	r.drop("changed")
	return res
}

// pushFar pushes less than the others: HTTP/2's windows make it long for who uses
// them.
func pushFar(r *rig) result {
	m, d := r.model("far", weights(4, r.size/8)), r.registry.farTLS
	res := r.compare(fmt.Sprintf("push %s in 4 members over TLS, 50 ms away", gib(r.size/8)),
		append(r.pushes(d, m, r.fresh), r.puts(d, m))...)
	res.atMost(1.0/3, "≤ 1/3 of oras-go on HTTP/2", "oras-go", "wall")
	r.drop("far")
	return res
}

func pushMany(r *rig) result {
	res := r.compare("push 10,000 members of 4 KiB", r.pushes(r.registry.plain, r.many(), r.fresh)...)
	res.atMost(0.2, "≤ 1/5 of oras-go", "oras-go", "wall")
	return res
}

// gib writes a size for a title.
func gib(size int64) string {
	if size%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", size>>30)
	}
	return fmt.Sprintf("%d MiB", size>>20)
}
