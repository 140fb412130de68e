package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// machine says in one line what was measured on, and with what.
func machine(ctx context.Context, r *rig) string {
	parts := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := line("/proc/cpuinfo", "model name"); model != "" {
		parts[0] += " (" + model + ")"
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(string(kernel), "-")
		parts = append(parts, "Linux "+strings.TrimSpace(version))
	}
	parts = append(parts, strings.Replace(runtime.Version(), "go", "Go ", 1))
	out, err := exec.CommandContext(ctx, filepath.Join(r.bin, "carton-oci"), "version").Output()
	if err == nil {
		first, _, _ := strings.Cut(string(out), "\n")
		parts = append(parts, strings.TrimSpace(first))
	}
	parts = append(parts, modules(ctx, r.root)...)
	if out, err := exec.CommandContext(ctx, r.curl, "--version").Output(); r.curl != "" && err == nil {
		parts = append(parts, strings.Join(strings.Fields(string(out))[:2], " "))
	}
	if out, err := exec.CommandContext(ctx, r.skopeo, "--version").Output(); r.skopeo != "" && err == nil {
		parts = append(parts, "skopeo "+strings.Fields(string(out))[2])
	}
	parts = append(parts, fmt.Sprintf("no peak below %.0f MiB can be seen", float64(r.floor)/(1<<20)))
	return strings.Join(parts, ", ")
}

// line returns the value of the first line of a file that has the key.
func line(name, key string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	for l := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// modules returns the versions of what is compared with and transferred to, as
// the modules' list has them.
func modules(ctx context.Context, root string) []string {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Version}}",
		"oras.land/oras-go/v2", "github.com/distribution/distribution/v3")
	cmd.Dir = filepath.Join(root, "e2e")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var all []string
	for l := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(l), " ")
		name := "oras-go"
		if strings.Contains(path, "distribution") {
			name = "distribution"
		}
		all = append(all, name+" "+strings.TrimPrefix(version, "v"))
	}
	return all
}
