package cri

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/e2e/internal/lan"
	"github.com/carton-oci/carton-oci/e2e/internal/testregistry"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The promise: what the examples run of the release's image runs as it is: as its own
// user, without capabilities, with nothing to write to but an emptyDir, and credentials
// from a secret. Two registries answer over TLS by the names of the examples.

const stagingRegistry = "staging.example.com"

func TestToolsOfTheExamplesRun(t *testing.T) {
	network := lan.New(t)
	n := (&node{runtime: "containerd", machine: network.Machine(t)}).start(t, network.Machine(t))
	n.iris(t) // to the registry of staging
	k := startKubelet(t, n)
	k.outside = n.overTLS(t, network)
	credentials := func(password string) map[string][]byte {
		auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		return map[string][]byte{".dockerconfigjson": fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, exampleRegistry, auth)}
	}

	t.Run("a wrong password", func(t *testing.T) {
		k.files = map[string]map[string][]byte{"promotion-credentials": credentials("byron")}
		got, err := k.run(t, "refused", example(t, "promote.yaml").Pod)
		if err != nil || len(got) != 1 || got[0].code == 0 || !strings.Contains(got[0].stderr, "unauthorized") {
			t.Errorf("got %+v, %v, want the container to say that it may not", got, err)
		}
	})
	k.files = map[string]map[string][]byte{
		"promotion-credentials": credentials(password), "registry-credentials": credentials(password),
	}
	t.Run("promote.yaml", func(t *testing.T) {
		got, err := k.run(t, "promote", example(t, "promote.yaml").Pod)
		if err != nil || len(got) != 1 || got[0].code != 0 {
			t.Fatalf("got %+v, %v, want the container to end well", got, err)
		}
		n.logIn(t)
		for _, form := range []string{"", "-image"} {
			here, there := n.registry.Host+"/models/iris:1"+form, n.private.Host+"/models/iris:1"+form
			if got, want := n.must(t, "resolve", there), n.must(t, "resolve", here); got != want {
				t.Errorf("got %s for %s, want %s", got, there, want)
			}
		}
	})
	t.Run("unpack.yaml", func(t *testing.T) {
		pod := example(t, "unpack.yaml").Pod
		got, err := k.run(t, "unpack", pod)
		if err != nil || len(got) != 2 || got[0].code != 0 || got[1].code != 0 {
			t.Fatalf("got %+v, %v, want both containers to end well", got, err)
		}
		if want := n.scores(t, pod.Containers[0]); got[1].stdout != want {
			t.Errorf("got %q, want %q", got[1].stdout, want)
		}
		t.Logf("pull printed %s", got[0].stdout)
	})
}

// overTLS lets the registries of the examples answer by their names, staging's without
// a password, and returns the files that tell a container who they are and whom to trust.
func (n *node) overTLS(t *testing.T, network *lan.LAN) []*runtimev1.Mount {
	t.Helper()
	config, authority := testregistry.TLSFor(t, exampleRegistry, stagingRegistry)
	var hosts string
	for name, s := range map[string]*testregistry.Server{exampleRegistry: n.private, stagingRegistry: n.registry} {
		m := network.Machine(t)
		s.FrontOn(t, tls.NewListener(m.Listen(t, 443), config), nil)
		hosts += m.Address + " " + name + "\n"
	}
	certificate, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	var mounts []*runtimev1.Mount
	for path, content := range map[string]string{"/etc/hosts": hosts, "/etc/ssl/certs/ca-certificates.crt": string(certificate)} {
		file := filepath.Join(n.home, filepath.Base(path))
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil { // for every user
			t.Fatal(err)
		}
		mounts = append(mounts, &runtimev1.Mount{ContainerPath: path, HostPath: file, Readonly: true})
	}
	return mounts
}
