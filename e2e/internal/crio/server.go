// Package crio runs a real CRI-O for a test, with a root, a state folder and a socket
// of its own: the other runtime that Kubernetes nodes mount images with. Nothing else
// on the machine is touched.
//
// It needs root, runc, conmon, a C compiler for pinns, and a disk that overlays can be
// mounted on. Where one is missing a test is skipped, loudly.
package crio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/daemon"
	"github.com/carton-oci/carton-oci/e2e/internal/program"
	"github.com/carton-oci/carton-oci/internal/testenv"
)

// Version is the CRI-O that is built and run.
const Version = "v1.34.0"

const module = "github.com/cri-o/cri-o"

var programs = program.Set{
	Name: "crio", Module: module, Version: Version,
	Tags:     []string{"containers_image_openpgp", "exclude_graphdriver_btrfs"},
	Packages: []string{module + "/cmd/crio"},
	C:        []string{"pinns"},
}

// Options say what a CRI-O pulls from.
type Options struct {
	// Registries are the hosts that answer over HTTP for the registries of image
	// names.
	Registries map[string]string
	// PauseImage is what holds a pod's namespaces.
	PauseImage string
}

// Start builds CRI-O where it has not been built before, and runs it until the test
// ends. It returns the path of its socket. The answer to answers, once it is nil, says
// that the socket is served.
func Start(t testing.TB, opts Options, answers func(socket string) error) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		testenv.NotChecked(t, "CRI-O needs Linux and root")
	}
	runc, conmon := testenv.Program(t, "runc"), testenv.Program(t, "conmon")
	testenv.Program(t, "cc")
	bin := programs.Build(t)
	dir := daemon.Dir(t, "crio")
	socket := filepath.Join(dir, "sock")
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policy := write("policy.json", `{"default": [{"type": "insecureAcceptAnything"}]}`)
	config := write("crio.conf", config(dir, bin, runc, conmon, policy, opts.PauseImage))
	write(".config/containers/registries.conf", registriesConf(opts.Registries)) // in the user's home
	cmd := exec.Command(filepath.Join(bin, "crio"), "--config", config, "--config-dir", "")
	cmd.Env = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(),
	}
	daemon.Start(t, cmd, func() error { return answers(socket) })
	return socket
}

// config is CRI-O's, for a machine whose kernel may lack what containers like to have,
// and without a network of containers' own. Every path that it writes to is below dir.
func config(dir, bin, runc, conmon, policy, pauseImage string) string {
	var b strings.Builder
	table := func(name string, keys ...string) {
		fmt.Fprintf(&b, "[%s]\n", name)
		for i := 0; i < len(keys); i += 2 {
			fmt.Fprintf(&b, "%s = %q\n", keys[i], keys[i+1])
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	table("crio", "root", in("root"), "runroot", in("run"), "storage_driver", "overlay", "log_dir", in("log"),
		"version_file", in("version"), "version_file_persist", in("version-persist"),
		"clean_shutdown_file", in("clean"))
	table("crio.api", "listen", in("sock"), "stream_port", "0")
	table("crio.runtime", "cgroup_manager", "cgroupfs", "conmon_cgroup", "pod", "default_runtime", "runc",
		"seccomp_profile", "unconfined", "apparmor_profile", "unconfined", "irqbalance_config_restore_file", "disable",
		"namespaces_dir", in("namespaces"), "container_exits_dir", in("exits"),
		"container_attach_socket_dir", in("attach"),
		"pinns_path", filepath.Join(bin, "pinns"))
	b.WriteString("hooks_dir = []\n")
	table("crio.runtime.runtimes.runc", "runtime_path", runc, "runtime_root", in("runc"), "monitor_path", conmon)
	table("crio.image", "signature_policy", policy, "signature_policy_dir", in("policies"), "pause_image", pauseImage,
		"pause_command", "")
	table("crio.network", "network_dir", in("cni"))
	fmt.Fprintf(&b, "plugin_dirs = [%q]\n[crio.nri]\nenable_nri = false\n", in("cni-bin"))
	return b.String()
}

// registriesConf says which host answers for a registry, as containers-registries.conf
// has it.
func registriesConf(hosts map[string]string) string {
	var b strings.Builder
	for registry, host := range hosts {
		for _, name := range []string{registry, host} {
			fmt.Fprintf(&b, "[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n", name, host)
		}
	}
	return b.String()
}
