package main

import "strings"

// small lets everything be done with a small model far away, where what counts is
// how often somebody waits for an answer.
func (r *rig) small(d door) result {
	members := append(weights(1, 1_400_000), files(9, "model/part%d.json", 11_000)...)
	m := r.model("small", members)
	var contenders []contender
	add := func(verb string, both []contender) {
		for _, c := range both {
			contenders = append(contenders, contender{c.name + " " + verb, c.start})
		}
	}
	add("push", r.pushes(d, m, r.fresh))
	// The second push knows what the first has learned.
	add("push again", r.pushes(d, m, func() { r.forget(); r.keep(d, m) }))
	// The others have never been here, and find what was pushed.
	pushed := func() { r.keep(r.registry.plain, m); r.forget(); r.cleared() }
	add("pull", r.pulls(d, pushed))
	for _, verb := range []string{"resolve", "inspect"} {
		add(verb, []contender{
			after(pushed, ours, r.carton(d, verb, d.host+"/org/carton:1")),
			after(pushed, "oras-go", r.oras(d, r.path("out"), verb, d.host+"/org/oras:1")),
		})
	}
	res := r.compare("1.5 MB in 12 layers, 50 ms away, "+d.scheme, contenders...)
	res.trips = true
	for _, m := range res.programs {
		if verb, ok := strings.CutPrefix(m.name, "oras-go "); ok {
			res.atMost(1.05, verb+": ≤ 1.05 × oras-go", m.name, "wall")
			res.atMost(1, verb+": no more round trips in a row than oras-go", m.name, "round trips")
		}
	}
	return res
}
