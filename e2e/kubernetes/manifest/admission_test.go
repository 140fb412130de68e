package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carton-oci/carton-oci/internal/testenv"
	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// The promise: the policies of examples/kubernetes/admission let pass what they should
// and nothing else, as the API server's own CEL environment reads them.

const modelDigest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// policy reads the objects of digests.yaml.
func policy(t *testing.T) (p admissionv1.ValidatingAdmissionPolicy, b admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "examples", "kubernetes", "admission", "digests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 2 {
		t.Fatalf("got %d objects, want a policy and its binding", len(documents))
	}
	for i, into := range []any{&p, &b} {
		raw, err := yaml.YAMLToJSONStrict([]byte(documents[i]))
		if err != nil {
			t.Fatal(err)
		}
		if err := strict(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return p, b
}

// eval evaluates an expression as the API server does one of a policy.
func eval(t *testing.T, expression string, values map[string]any) any {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := program.Eval(values)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return out.Value()
}

func TestModelsAreNamedByDigest(t *testing.T) {
	p, b := policy(t)
	if b.Spec.PolicyName != p.Name || len(b.Spec.ValidationActions) != 1 || b.Spec.ValidationActions[0] != admissionv1.Deny {
		t.Errorf("got the binding %+v, want one that denies by %s", b.Spec, p.Name)
	}
	// Whatever runs pods ends in them, so that nothing passes beside it.
	if rules := p.Spec.MatchConstraints.ResourceRules; len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"pods"}) ||
		!slices.Equal(rules[0].Operations, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}) || *p.Spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("got %+v, want all pods that are created and updated, and none where the policy fails", p.Spec)
	}
	for name, tt := range map[string]struct {
		volumes []any
		want    string // in what is said; "" is let pass
	}{
		"no volumes":        {nil, ""},
		"no image":          {[]any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}, ""},
		"by digest":         {[]any{image("registry.example.com/models/iris@" + modelDigest)}, ""},
		"tag and digest":    {[]any{image("registry.example.com/models/iris:1-image@" + modelDigest)}, ""},
		"by tag":            {[]any{image("registry.example.com/models/iris:1-image")}, "registry.example.com/models/iris:1-image"},
		"one of two":        {[]any{image("registry.example.com/models/a@" + modelDigest), image("registry.example.com/models/b:1")}, "models/b:1"},
		"half a digest":     {[]any{image("registry.example.com/models/iris@sha256:9f86")}, "by digest"},
		"something after":   {[]any{image("registry.example.com/models/iris@" + modelDigest + "\n")}, "by digest"},
		"another registry":  {[]any{image("example.com/models/iris@" + modelDigest)}, "models come from"},
		"a name that fools": {[]any{image("registry.example.com.evil.example/models/iris@" + modelDigest)}, "models come from"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{}
			if tt.volumes != nil {
				spec["volumes"] = tt.volumes
			}
			object := map[string]any{"object": map[string]any{"spec": spec}}
			variables := map[string]any{}
			for _, v := range p.Spec.Variables {
				variables[v.Name] = eval(t, v.Expression, object)
			}
			object["variables"] = variables
			var said []string
			for _, v := range p.Spec.Validations {
				if ok, _ := eval(t, v.Expression, object).(bool); !ok {
					message, _ := eval(t, v.MessageExpression, object).(string)
					said = append(said, message)
				}
			}
			if got := strings.Join(said, "; "); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func image(reference string) map[string]any {
	return map[string]any{"name": "model", "image": map[string]any{"reference": reference}}
}

// What Kyverno itself says of its policy is in docs/kubernetes.md. Here is what it has
// of ours: which images it asks about, and that it asks about all of them.
func TestTheSignedPolicyLooksAtVolumes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "examples", "kubernetes", "admission", "signed-kyverno.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Spec struct {
			FailurePolicy     string
			ValidationActions []string
			Images            []struct{ Name, Expression string }
			Attestors         []struct {
				Cosign struct{ Ctlog struct{ URL string } }
			}
			Validations []struct{ Expression string }
		}
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	s := p.Spec
	if s.FailurePolicy != "Fail" || !slices.Equal(s.ValidationActions, []string{"Deny"}) || len(s.Images) != 1 || len(s.Attestors) != 1 || s.Attestors[0].Cosign.Ctlog.URL == "" {
		t.Fatalf("got %+v, want a policy that denies, of one list of images and one key, which names a log", s)
	}
	if got := s.Validations[0].Expression; !strings.HasPrefix(got, "images."+s.Images[0].Name+".map(") || !strings.HasSuffix(got, ".all(n, n > 0)") {
		t.Errorf("got %s, want all images to have a signature", got)
	}
	volumes := []any{image("a"), map[string]any{"name": "tmp", "emptyDir": map[string]any{}}, image("b")}
	got := eval(t, "("+s.Images[0].Expression+") == ['a', 'b']", map[string]any{"object": map[string]any{"spec": map[string]any{"volumes": volumes}}})
	if got != true {
		t.Errorf("got %v, want both images", got)
	}
}
