package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// killed compares programs that are killed when half of the bytes have passed
// the server's sockets, and run again: what the figures are of.
func (r *rig) killed(ctx context.Context, direction string, contenders []contender) (result, error) {
	for i, c := range contenders {
		before := c.prepare
		contenders[i].prepare = func(ctx context.Context) error {
			if err := before(ctx); err != nil {
				return err
			}
			p, err := c.program(ctx)
			if err != nil {
				return err
			}
			if err := r.server.reset(ctx); err != nil {
				return err
			}
			if err := killedAt(ctx, p, r.server.reached(direction, r.size/2)); err != nil {
				return err
			}
			time.Sleep(time.Second) // the server learns of it
			return nil
		}
	}
	once := *r
	once.pairs = min(3, r.pairs)
	return once.compare(ctx, contenders...)
}

func pushKilled(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	host := r.server.Plain
	fresh := func(ctx context.Context) error { return errors.Join(r.forget(), r.server.fresh(ctx)) }
	res, err := r.killed(ctx, "in", []contender{
		{name: ours, prepare: fresh, program: plain(
			r.carton("push", r.path("large.carton"), host+"/org/carton:1", "--plain-http"))},
		{name: "oras-go", prepare: fresh, program: plain(r.oras(r.path("large"), "push", host+"/org/oras:1"))},
	})
	res.Title = fmt.Sprintf("push %s, killed at half: the second run", gib(r.size))
	res.Verdicts = []verdict{res.limit(0.52, "≤ 52 % of the bytes", r.size, sent)}
	return res, err
}

func pullKilled(ctx context.Context, r *rig) (result, error) {
	if err := r.large(); err != nil {
		return result{}, err
	}
	if err := r.keep(ctx, "large"); err != nil {
		return result{}, err
	}
	host, out := r.server.Plain, r.path("out")
	fresh := func(context.Context) error {
		_, err := r.empty("out")
		return err
	}
	res, err := r.killed(ctx, "out", []contender{
		{name: ours, prepare: fresh, program: plain(
			r.carton("pull", host+"/org/carton:1", "-o", r.path("out", "m.carton"), "--plain-http"))},
		{name: "oras-go", prepare: fresh, program: plain(r.oras(out, "pull", host+"/org/oras:1"))},
	})
	res.Title = fmt.Sprintf("pull %s, killed at half: the second run", gib(r.size))
	res.Verdicts = []verdict{res.limit(0.52, "≤ 52 % of the bytes", r.size, got)}
	return res, errors.Join(err, os.RemoveAll(out))
}
