package main

import (
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

func pushKilled(r *rig) result {
	m := r.large()
	res := r.killed(fmt.Sprintf("push %s, killed at half: the second run", gib(r.size)),
		&r.registry.in, r.pushes(r.registry.plain, m, r.fresh))
	res.part(0.52, "≤ 52 % of the bytes", ours, r.size, "sent")
	return res
}

func pullKilled(r *rig) result {
	r.keep(r.registry.plain, r.large())
	res := r.killed(fmt.Sprintf("pull %s, killed at half: the second run", gib(r.size)),
		&r.registry.out, r.pulls(r.registry.plain, r.cleared))
	res.part(0.52, "≤ 52 % of the bytes", ours, r.size, "received")
	return res
}

// killed compares programs that are killed when half of the bytes have passed
// the registry's sockets, and run again: what the figures are of.
func (r *rig) killed(title string, passed *atomic.Int64, contenders []contender) result {
	for i, c := range contenders {
		contenders[i].start = func() program {
			p := c.start()
			r.killAtHalf(p, passed)
			return p
		}
	}
	return r.compare(title, contenders...)
}

func (r *rig) killAtHalf(p program, passed *atomic.Int64) {
	cmd, ended := exec.Command(p[0], p[1:]...), make(chan error, 1)
	r.registry.reset()
	check(cmd.Start())
	go func() { ended <- cmd.Wait() }()
	for passed.Load() < r.size/2 {
		select {
		case err := <-ended:
			check(fmt.Errorf("%s ended before it was killed: %w", strings.Join(p, " "), err))
		case <-time.After(time.Millisecond):
		}
	}
	check(cmd.Process.Kill())
	<-ended                 //nolint:errcheck // it was killed
	time.Sleep(time.Second) // the registry learns of it
}
