package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// overhead is what requests, headers and small documents may add to a model's
// bytes.
const overhead = 1 << 20

func pushCold(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	files, host := r.path("large"), r.server.Plain
	layout := r.path("layout")
	if err := must(ctx, r.carton("push", r.path("large.carton"), "oci:"+layout+":1")); err != nil {
		return result{}, err
	}
	fresh := func(ctx context.Context) error { return errors.Join(r.forget(), r.server.fresh(ctx)) }
	res, err := r.compare(ctx,
		contender{name: ours, prepare: fresh, program: plain(
			r.carton("push", r.path("large.carton"), host+"/org/carton:1", "--plain-http"))},
		contender{name: "curl", prepare: fresh, program: func(ctx context.Context) (program, error) {
			puts, err := r.puts(ctx, "http://"+host, files, r.members)
			return r.curlAll(puts), err
		}},
		contender{name: "oras-go", prepare: fresh, program: plain(r.oras(files, "push", host+"/org/oras:1"))},
		contender{name: "skopeo", prepare: fresh, program: plain(program{path: r.skopeo, dir: r.dir, args: []string{
			"copy", "--quiet", "--dest-tls-verify=false", "oci:" + layout + ":1", "docker://" + host + "/org/skopeo:1",
		}})},
	)
	res.Title = fmt.Sprintf("push %s in 4 members, cold", gib(r.size))
	res.Verdicts = []verdict{
		res.atMost(1.10, "≤ 1.10 × curl", "curl", wall),
		res.atMost(1, "faster than oras-go", "oras-go", wall),
	}
	return res, errors.Join(err, os.RemoveAll(layout))
}

func pushAgain(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "large"); err != nil {
		return result{}, err
	}
	host := r.server.Plain
	res, err := r.compare(ctx,
		contender{name: ours, program: plain(r.carton("push", r.path("large.carton"), host+"/org/carton:1", "--plain-http"))},
		contender{name: "oras-go", program: plain(r.oras(r.path("large"), "push", host+"/org/oras:1"))},
	)
	res.Title = fmt.Sprintf("push %s again, unchanged", gib(r.size))
	most := of(res.runs(ours), read).most
	res.Verdicts = []verdict{
		// What is read are its configuration, the zip's directory, MANIFEST, carton.toml
		// and answers: far less than the smallest of the members.
		{"no member's bytes read", fmt.Sprintf("%.0f kB read, all calls", most/1e3), most < overhead},
		res.atMost(1.0/20, "≤ 1/20 of oras-go", "oras-go", wall),
	}
	return res, err
}

func pushChanged(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "large"); err != nil {
		return result{}, err
	}
	host, dir, seed := r.server.Plain, r.path("changed"), uint64(time.Now().UnixNano())
	// Each run changes the member anew: what the registry has, nobody sends.
	change := func(context.Context) error {
		if _, err := r.empty("changed/model"); err != nil {
			return err
		}
		members := append([]member(nil), r.members...)
		for _, m := range members[:3] {
			if err := os.Link(r.path("large", m.path), filepath.Join(dir, m.path)); err != nil {
				return err
			}
		}
		seed++
		var err error
		if members[3], err = writeWeight(dir, members[3].path, members[3].size, seed); err == nil {
			_, err = writeManifest(dir, members)
		}
		return err
	}
	res, err := r.compare(ctx,
		contender{name: ours, prepare: change, program: plain(r.carton("push", dir, host+"/org/carton:2", "--plain-http"))},
		contender{name: "oras-go", prepare: change, program: plain(r.oras(dir, "push", host+"/org/oras:2"))},
	)
	res.Title = fmt.Sprintf("push %s with 1 of 4 members changed", gib(r.size))
	res.Verdicts = []verdict{
		res.limit(0.26, "1/4 of the bytes sent", r.size, sent),
		res.limit(0.26, "1/4 of the bytes read", r.size, read),
	}
	return res, errors.Join(err, os.RemoveAll(dir))
}

// manySmall makes 10,000 members of 4 KiB, once.
func (r *rig) manySmall() error {
	const count, size = 10_000, 4 << 10
	if _, err := os.Stat(r.path("many.carton")); err == nil {
		return nil
	}
	var members []member
	for i := range count {
		m, err := writeMember(r.path("many"), fmt.Sprintf("model/part%02d/file%05d.json", i/100, i), noise(uint64(i), size))
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	return r.finish("many", members)
}

func pushMany(ctx context.Context, r *rig) (result, error) {
	if err := r.manySmall(); err != nil {
		return result{}, err
	}
	host := r.server.Plain
	fresh := func(ctx context.Context) error { return errors.Join(r.forget(), r.server.fresh(ctx)) }
	res, err := r.compare(ctx,
		contender{name: ours, prepare: fresh, program: plain(
			r.carton("push", r.path("many.carton"), host+"/org/carton:1", "--plain-http"))},
		contender{name: "oras-go", prepare: fresh, program: plain(r.oras(r.path("many"), "push", host+"/org/oras:1"))},
	)
	res.Verdicts = []verdict{res.atMost(0.2, "≤ 1/5 of oras-go", "oras-go", wall)}
	return res, err
}
