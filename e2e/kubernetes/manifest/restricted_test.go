package manifest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

// The promise: a namespace that enforces the strictest Pod Security Standard takes the
// examples, and they need nothing to write to but what they mount.

// forbidden is what the API server's own admission says of a pod, where its namespace
// has the label pod-security.kubernetes.io/enforce: restricted.
func forbidden(t *testing.T, o *Object) string {
	t.Helper()
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := podsecurity.AggregateCheckResults(evaluator.EvaluatePod(level, &metav1.ObjectMeta{Name: o.Name}, &o.Pod))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

func TestARestrictedNamespaceTakesTheExamples(t *testing.T) {
	for name, o := range examples(t) {
		if said := forbidden(t, o); said != "" {
			t.Errorf("%s: %s", name, said)
		}
		for _, c := range o.Containers() {
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("%s: the container %s may write to its root file system", name, c.Name)
			}
		}
	}
	o, err := parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if said := forbidden(t, o); !strings.Contains(said, "runAsNonRoot") {
		t.Errorf("got %q of a pod that says nothing of its user, want it to be refused", said)
	}
}

// What runs carton-oci runs the release that CHANGELOG.md begins with, by the name that
// a release replaces with its digest (e2e/release). What it writes to is an emptyDir.
func TestExamplesRunTheReleasesImage(t *testing.T) {
	changes, err := os.ReadFile(filepath.Join(testenv.Root(), "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindSubmatch(changes)
	if version == nil {
		t.Fatal("CHANGELOG.md names no version")
	}
	found := 0
	for name, o := range examples(t) {
		for _, c := range o.Containers() {
			if len(c.Command) == 0 || c.Command[0] != "carton-oci" {
				continue
			}
			found++
			if want := "ghcr.io/carton-oci/carton-oci:" + string(version[1]); c.Image != want {
				t.Errorf("%s: %s runs %s, want %s", name, c.Name, c.Image, want)
			}
			for _, m := range c.VolumeMounts {
				for _, v := range o.Pod.Volumes {
					if v.Name == m.Name && !m.ReadOnly && v.EmptyDir == nil {
						t.Errorf("%s: %s may write to %s, which is no emptyDir", name, c.Name, v.Name)
					}
				}
			}
		}
	}
	if found != 3 { // promote, unpack, verify
		t.Errorf("got %d containers of the examples that run carton-oci, want 3", found)
	}
}
