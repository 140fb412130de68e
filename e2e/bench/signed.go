package main

import (
	"fmt"
	"os"
)

// signed signs a model that nobody could keep here, far away, and asks who signed it.
func signed(r *rig) result {
	size, key := r.size*50, r.path("signer", "key")
	d, m := r.registry.far, r.sparse(size, chunk, false)
	check(os.Setenv("COSIGN_PASSWORD", "bench"))
	r.empty("signer")
	r.output(r.carton(door{}, "keygen", "-o", key))
	ref := d.host + "/org/carton:1"
	sign := r.carton(d, "sign", ref, "--key", key+".key")
	ready := func() { r.planted(r.registry.plain, m) }
	isSigned := func() { ready(); r.output(sign); r.forget() }
	res := r.compare(fmt.Sprintf("sign %s in a registry, 50 ms away", gib(size)),
		after(ready, ours+" sign", sign),
		after(isSigned, ours+" sign again", sign),
		after(isSigned, ours+" verify --key", r.carton(d, "verify", ref, "--key", key+".pub")),
	)
	res.trips = true
	for _, p := range res.programs {
		wire := p.of("sent").most + p.of("received").most
		res.want(wire < 1e6, p.name+": under 1 MB", fmt.Sprintf("%.1f kB sent and received at most", wire/1e3))
	}
	r.registry.fresh()
	r.drop("sparse", "signer")
	return res
}
