// Package lan makes machines for a test out of network namespaces: each has an address
// of its own and one cable, to a switch. Nobody else on this computer sees them, and a
// test that is killed leaves nothing behind.
//
// The kernel counts what each machine sends, whatever the programs on it say. A cable
// can be pulled out: connections then end as those to a machine do that is gone.
//
// It needs Linux, root and iproute2's ip. Where one is missing a test is skipped, loudly.
package lan
