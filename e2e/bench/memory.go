package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// planted makes an empty registry that has a model without anybody having sent
// its weight.
func (r *rig) planted(d door, m model) {
	r.fresh()
	w := m.members[0]
	r.registry.plant("org/carton", w.sum, filepath.Join(m.dir, w.path))
	r.output(r.carton(d, "push", m.dir, d.host+"/org/carton:1"))
	r.forget()
	r.cleared()
}

// memory runs the command with a member of one size and of ten times as much.
func memory(r *rig) result {
	r.drop("large") // whose disk is needed
	d, verbs, small, large := r.registry.plain, []string{"verify", "push", "pull"}, r.size/2, r.size*5
	res := result{title: fmt.Sprintf("memory: 1 member of %s and of %s", gib(small), gib(large))}
	name := func(verb string, size int64) string { return fmt.Sprintf("%s %s, %s", ours, verb, gib(size)) }
	for _, size := range []int64{small, large} {
		m, ref := r.sparse(size, chunk, true), d.host+"/org/carton:1"
		ready := func() { r.planted(d, m) }
		part := r.compare("",
			after(ready, name("verify", size), r.carton(d, "verify", ref)),
			after(r.fresh, name("push", size), r.carton(d, "push", m.dir, ref)),
			after(ready, name("pull", size), r.carton(d, "pull", ref, "-o", r.path("out", "m.carton"))),
		)
		res.programs = append(res.programs, part.programs...)
	}
	worst := 0.0
	for _, m := range res.programs {
		worst = max(worst, m.of("peak").most)
	}
	res.want(worst < 64<<20, "under 64 MiB", fmt.Sprintf("%.1f MiB at most", worst/(1<<20)))
	for _, verb := range verbs {
		times := res.program(name(verb, large)).of("peak").median / res.program(name(verb, small)).of("peak").median
		res.want(times < 1.15, verb+": the same for both", fmt.Sprintf("%.3g ×", times))
	}
	r.registry.fresh()
	r.drop("sparse")
	return res
}

// oneTensor reads one tensor of a model that nobody could keep here.
func oneTensor(r *rig) result {
	size, length := r.size*50, r.size/32
	d, file, m := r.registry.plain, r.path("tensor", "t.npy"), r.sparse(size, length, false)
	r.planted(d, m)
	res := r.compare(fmt.Sprintf("read 1 tensor of %s out of %s", gib(length), gib(size)),
		after(func() { r.forget(); r.empty("tensor") }, ours,
			r.carton(d, "tensors", d.host+"/org/carton:1", "1", "-o", file)))
	wire := int64(res.program(ours).of("received").most)
	res.want(wire <= length+200_000, "its bytes and 200 kB",
		fmt.Sprintf("%d + %.0f kB", length, float64(wire-length)/1e3))
	read, err := os.ReadFile(file)
	check(err)
	weight, err := os.Open(filepath.Join(m.dir, m.members[0].path))
	check(err)
	defer weight.Close()
	made := make([]byte, length)
	_, err = weight.ReadAt(made, header+size/2)
	check(err)
	res.want(bytes.HasSuffix(read, made), "the tensor's own bytes", fmt.Sprintf("%d bytes compared", length))
	r.registry.fresh()
	r.drop("sparse", "tensor")
	return res
}
