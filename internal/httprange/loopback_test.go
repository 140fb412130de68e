package httprange

import "testing"

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost":           true,
		"localhost:5000":      true,
		"Localhost.":          true,
		"registry.localhost":  true,
		"127.0.0.1":           true,
		"127.9.9.9:5000":      true,
		"[::1]":               true,
		"[::1]:5000":          true,
		"[::ffff:127.0.0.1]":  true,
		"localhost.example":   false,
		"127.0.0.1.nip.io":    false,
		"10.0.0.1:5000":       false,
		"[2001:db8::1]:5000":  false,
		"ghcr.io":             false,
		"registry:5000":       false,
		"notlocalhost:5000":   false,
		"[::ffff:10.0.0.1]:1": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}
