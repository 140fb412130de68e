// Package manifest reads the objects that the examples show, by Kubernetes' own
// types, and refuses what a cluster would refuse or, worse, drop.
package manifest

import (
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Object is an object that runs pods of one kind.
type Object struct {
	metav1.TypeMeta
	Name string
	Pod  corev1.PodSpec
	// Deployment is the whole object, if it is one.
	Deployment *appsv1.Deployment
}

// inferenceService is KServe's, as far as the examples use it. KServe puts a
// pod's spec into the predictor, beside fields of its own (v0.15, serving/v1beta1).
type inferenceService struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Predictor struct {
			corev1.PodSpec `json:",inline"`
			MinReplicas    *int32 `json:"minReplicas"`
		} `json:"predictor"`
	} `json:"spec"`
}

// Read reads a file of one object in YAML. A field that its type doesn't have, or
// that is written in another case or twice, is an error.
func Read(name string) (*Object, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	object, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return object, nil
}

func parse(text []byte) (*Object, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	o := &Object{}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &o.TypeMeta); err != nil {
		return nil, err
	}
	switch o.APIVersion + " " + o.Kind {
	case "v1 Pod":
		var pod corev1.Pod
		err = strict(raw, &pod)
		o.Name, o.Pod = pod.Name, pod.Spec
	case "apps/v1 Deployment":
		o.Deployment = &appsv1.Deployment{}
		err = strict(raw, o.Deployment)
		o.Name, o.Pod = o.Deployment.Name, o.Deployment.Spec.Template.Spec
	case "batch/v1 Job":
		var job batchv1.Job
		err = strict(raw, &job)
		o.Name, o.Pod = job.Name, job.Spec.Template.Spec
	case "serving.kserve.io/v1beta1 InferenceService":
		var service inferenceService
		err = strict(raw, &service)
		o.Name, o.Pod = service.Name, service.Spec.Predictor.PodSpec
	default:
		err = fmt.Errorf("got a %q of %q, want a Pod, Deployment, Job or InferenceService", o.Kind, o.APIVersion)
	}
	return o, err
}

func strict(raw []byte, into any) error {
	findings, err := json.UnmarshalStrict(raw, into)
	return errors.Join(append(findings, err)...)
}

// Containers returns a pod's containers, those of its start first.
func (o *Object) Containers() []corev1.Container {
	return append(append([]corev1.Container(nil), o.Pod.InitContainers...), o.Pod.Containers...)
}
