package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// memory runs the command with a member of one size and of ten times as much,
// against the server that makes its bytes and keeps none. Not every pull of the
// larger one is done: it has to go somewhere, and -disk says whether it may.
func memory(ctx context.Context, r *rig) (result, error) {
	const most = 64 << 20
	var res result
	once := *r
	once.pairs = min(3, r.pairs)
	small, large := r.size, 10*r.size
	title := func(what string, size int64) string { return fmt.Sprintf("%s, %s", what, gib(size)) }
	for _, size := range []int64{small, large} {
		m, err := r.server.describe(ctx, size, 1<<20, true)
		if err != nil {
			return res, err
		}
		ref := r.server.Synthetic + "/" + m.Repository + ":1"
		contenders := []contender{{name: title("verify", size), program: plain(r.carton("verify", ref, "--plain-http"))}}
		push, err := r.sparse(size)
		if err != nil {
			return res, err
		}
		push.name = title("push", size)
		contenders = append(contenders, push)
		if out := r.path("out"); size == small || size+size/4 < r.disk && size*2 < freeDisk(r.dir) {
			contenders = append(contenders, contender{
				name: title("pull", size), program: plain(r.carton("pull", ref, "-o", r.path("out", "m.carton"), "--plain-http")),
				prepare: func(context.Context) error {
					_, err := r.empty("out")
					return err
				}, outputs: []string{out},
			})
		}
		part, err := once.compare(ctx, contenders...)
		if err := errors.Join(err, os.RemoveAll(r.path("out")), os.RemoveAll(r.path("sparse"))); err != nil {
			return res, err
		}
		res.Programs = append(res.Programs, part.Programs...)
	}
	res.Title = fmt.Sprintf("memory: 1 member of %s and of %s, bytes made by the server", gib(small), gib(large))
	worst := 0.0
	for _, m := range res.Programs {
		worst = max(worst, of(m.Runs, peakOf).most)
	}
	res.Verdicts = []verdict{{"under 64 MiB", fmt.Sprintf("%.1f MiB at most", worst/(1<<20)), worst < most}}
	for _, what := range []string{"verify", "push", "pull"} {
		x, y := res.runs(title(what, small)), res.runs(title(what, large))
		if y == nil {
			res.Verdicts = append(res.Verdicts, verdict{what + ": the same for both", "not run: -disk", false})
			continue
		}
		s := of(y, peakOf).median / of(x, peakOf).median
		res.Verdicts = append(res.Verdicts, verdict{what + ": the same for both", two(s) + " ×", s < 1.15})
	}
	return res, nil
}

// sparse makes a folder that looks like a carton of that size and takes no disk
// to speak of, and returns its push.
func (r *rig) sparse(size int64) (contender, error) {
	dir, err := r.empty("sparse")
	if err != nil {
		return contender{}, err
	}
	m, err := writeSparse(dir, "model/weights.safetensors", size)
	if err == nil {
		_, err = writeManifest(dir, []member{m})
	}
	return contender{
		program: plain(r.carton("push", dir, r.server.Synthetic+"/org/sparse:1", "--plain-http")),
		prepare: func(context.Context) error { return r.forget() },
	}, err
}

// oneTensor reads one tensor of a model that nobody could keep here.
func oneTensor(ctx context.Context, r *rig) (result, error) {
	const size, tensor, most = 100 << 30, 64 << 20, 200_000
	m, err := r.server.describe(ctx, size, tensor, false)
	if err != nil {
		return result{}, err
	}
	out, err := r.empty("out")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(out)
	ref, file := r.server.Synthetic+"/"+m.Repository+":1", r.path("out", "t.npy")
	res, err := r.compare(ctx, contender{
		name: ours,
		prepare: func(context.Context) error {
			_, err := r.empty("out")
			return errors.Join(err, r.forget())
		},
		program: plain(r.carton("tensors", ref, "block.wanted.weight", "-o", file, "--plain-http")),
	})
	if err != nil {
		return res, err
	}
	sum, err := tailSum(file, tensor)
	if err != nil {
		return res, err
	}
	wire := slices.MaxFunc(res.runs(ours), func(x, y figures) int { return int(x.Out - y.Out) }).Out
	res.Verdicts = []verdict{
		{"its bytes and 200 kB", fmt.Sprintf("%d + %.0f kB", tensor, float64(wire-tensor)/1e3), wire <= tensor+most},
		{"the tensor's own bytes", sum[:12] + "…", sum == m.TensorSum},
	}
	return res, nil
}

// tailSum returns the sha256 of the last n bytes of a file.
func tailSum(name string, n int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Seek(-n, io.SeekEnd); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{f}, make([]byte, chunk)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
