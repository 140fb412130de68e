package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func pullLarge(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "large"); err != nil {
		return result{}, err
	}
	res, err := r.pulls(ctx, pullFrom{host: r.server.Plain, skopeo: true, gets: func(base, dir string) []transfer {
		return gets(base, "org/carton", dir, r.members)
	}})
	res.Title = fmt.Sprintf("pull %s in 4 members", gib(r.size))
	res.Verdicts = []verdict{
		res.atMost(1.5, "≤ 1.5 × curl", "curl", wall),
		res.atMost(1.5, "≤ 1.5 × curl, both until it is on disk", "curl", onDisk),
		res.atMost(1, "faster than oras-go", "oras-go", wall),
		res.atMost(1, "faster than oras-go, both until it is on disk", "oras-go", onDisk),
		res.limit(1.01, "≤ 1.01 × the size written", r.size, written),
	}
	return res, err
}

// pullFrom says from where, and what curl asks for.
type pullFrom struct {
	host   string
	caFile string                            // "" is plain HTTP
	gets   func(base, dir string) []transfer // nil: there is nothing to compare with
	skopeo bool
}

// pulls compares pulls of what was kept.
func (r *rig) pulls(ctx context.Context, from pullFrom) (result, error) {
	out := r.path("out")
	fresh := func(context.Context) error {
		_, err := r.empty("out")
		return err
	}
	base, ourFlags, orasFlags, curlFlags := "http://"+from.host, []string{"--plain-http"}, []string(nil), []string(nil)
	if from.caFile != "" {
		base, ourFlags = "https://"+from.host, []string{"--ca-file", from.caFile}
		orasFlags, curlFlags = []string{"-ca-file", from.caFile}, []string{"--cacert", from.caFile, "--http1.1"}
	}
	contenders := []contender{
		{name: ours, prepare: fresh, program: plain(
			r.carton(append([]string{"pull", from.host + "/org/carton:1", "-o", r.path("out", "m.carton")}, ourFlags...)...))},
		{name: "oras-go", prepare: fresh, program: plain(r.oras(out, append(orasFlags, "pull", from.host+"/org/oras:1")...))},
	}
	if from.gets != nil {
		contenders = append(contenders, contender{name: "curl", prepare: fresh, program: plain(
			r.curlAll(from.gets(base, out), curlFlags...))})
	}
	if from.skopeo {
		contenders = append(contenders, contender{name: "skopeo", prepare: fresh, program: plain(program{
			path: r.skopeo, dir: r.dir, args: []string{
				"copy", "--quiet", "--src-tls-verify=false", "docker://" + from.host + "/org/carton:1", "oci:" + r.path("out", "layout") + ":1",
			},
		})})
	}
	for i := range contenders {
		contenders[i].outputs = []string{out}
	}
	res, err := r.compare(ctx, contenders...)
	return res, errors.Join(err, os.RemoveAll(out))
}

func pullSlow(ctx context.Context, r *rig) (result, error) {
	members, err := r.model("single", 1, r.size/2)
	if err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "single"); err != nil {
		return result{}, err
	}
	res, err := r.pulls(ctx, pullFrom{host: r.server.Slow, gets: func(base, dir string) []transfer {
		return parts(base, "org/carton", dir, members[0], 8)
	}})
	res.Title = fmt.Sprintf("pull 1 member of %s, each connection limited to 20 MB/s", gib(r.size/2))
	res.Verdicts = []verdict{res.atLeast(6, "≥ 6 × as fast as oras-go", "oras-go")}
	return res, errors.Join(err, os.RemoveAll(r.path("single")), os.Remove(r.path("single.carton")))
}

// farSize is what is pushed over the long cable: HTTP/2's windows make it long for
// who uses them.
const farSize = 256 << 20

func pushFar(ctx context.Context, r *rig) (result, error) {
	members, err := r.model("far", 4, farSize)
	if err != nil {
		return result{}, err
	}
	host, ca := r.server.Far, r.server.CAFile
	fresh := func(ctx context.Context) error { return errors.Join(r.forget(), r.server.fresh(ctx)) }
	res, err := r.compare(ctx,
		contender{name: ours, prepare: fresh, program: plain(
			r.carton("push", r.path("far.carton"), host+"/org/carton:1", "--ca-file", ca))},
		contender{name: "curl", prepare: fresh, program: func(ctx context.Context) (program, error) {
			puts, err := r.puts(ctx, "https://"+host, r.path("far"), members)
			return r.curlAll(puts, "--cacert", ca, "--http1.1"), err
		}},
		contender{name: "oras-go", prepare: fresh, program: plain(r.oras(r.path("far"), "-ca-file", ca, "push", host+"/org/oras:1"))},
	)
	res.Verdicts = []verdict{res.atLeast(3, "≥ 3 × as fast as oras-go on HTTP/2", "oras-go")}
	return res, err
}

func pullFar(ctx context.Context, r *rig) (result, error) {
	members, err := r.model("distant", 4, r.size/2)
	if err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "distant"); err != nil {
		return result{}, err
	}
	res, err := r.pulls(ctx, pullFrom{host: r.server.Far, caFile: r.server.CAFile, gets: func(base, dir string) []transfer {
		return gets(base, "org/carton", dir, members)
	}})
	res.Title = fmt.Sprintf("pull %s in 4 members over TLS, 50 ms away", gib(r.size/2))
	res.Verdicts = []verdict{res.atLeast(3, "≥ 3 × as fast as oras-go on HTTP/2", "oras-go")}
	return res, errors.Join(err, os.RemoveAll(r.path("distant")), os.Remove(r.path("distant.carton")))
}

func pullMany(ctx context.Context, r *rig) (result, error) {
	if err := r.manySmall(); err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "many"); err != nil {
		return result{}, err
	}
	res, err := r.pulls(ctx, pullFrom{host: r.server.Plain})
	res.Verdicts = []verdict{res.atMost(0.2, "≤ 1/5 of oras-go", "oras-go", wall)}
	return res, err
}
