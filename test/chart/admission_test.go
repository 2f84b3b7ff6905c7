package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/test/rig"
)

// warnings collects the warnings of the API server.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// dryRun is a client that sends dry-run requests and rejects unknown fields.
type dryRun struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	warned *warnings
}

func newDryRun(t *testing.T) dryRun {
	t.Helper()
	must(t, others())
	config, warned := lab.RESTConfig(), &warnings{}
	config.WarningHandler = warned
	config.QPS = -1
	client, err := dynamic.NewForConfig(rest.CopyConfig(config))
	must(t, err)
	groups, err := restmapper.GetAPIGroupResources(lab.Client().Discovery())
	must(t, err)
	return dryRun{client, restmapper.NewDiscoveryRESTMapper(groups), warned}
}

// apply sends a manifest to the API server in a dry run, and returns the resulting object.
func (d dryRun) apply(ctx context.Context, text string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		return nil, fmt.Errorf("reading: %w\n%s", err, text)
	}
	mapping, err := d.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return object, err
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return object, err
	}
	var client dynamic.ResourceInterface = d.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = d.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "test", FieldValidation: metav1.FieldValidationStrict, Force: new(true)}
	_, err = client.Patch(ctx, object.GetName(), types.ApplyPatchType, data, options)
	return object, err
}

func TestARealAPIServerTakesEveryObjectOfEveryInstall(t *testing.T) {
	namespace(t, "strict", map[string]string{"pod-security.kubernetes.io/warn": "restricted"})
	for _, name := range []string{"ml", "research", "monitoring"} {
		namespace(t, name, nil)
	}
	d, kinds := newDryRun(t), map[string]bool{}
	for name, text := range installs {
		manifests, _ := render(t, Release{Name: "heliostat", Namespace: "strict"}, text)
		for _, m := range manifests {
			object, err := d.apply(t.Context(), m.Text)
			if err != nil {
				t.Errorf("%s: %s of %s: %v", name, object.GetKind(), m.Template, err)
				continue
			}
			kinds[object.GetKind()] = true
			if mayNotWarn := object.GetKind() != "DaemonSet" && name != "everything off"; mayNotWarn && len(d.warned.said) > 0 {
				t.Errorf("%s: %s of %s: the API server warns: %s", name, object.GetKind(), m.Template, strings.Join(d.warned.said, "; "))
			}
			d.warned.said = nil
		}
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "Service", "ServiceAccount", "Secret", "ConfigMap", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
		"PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "PrometheusRule", "Certificate", "Issuer", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		if !kinds[kind] {
			t.Errorf("no install has a %s", kind)
		}
	}
}

// TestKubeRayTakesTheExamples uses KubeRay 1.6.2, the newest version whose custom resource definitions are available.
// The definitions must reject the fields that 1.7 adds by name, and nothing else.
func TestKubeRayTakesTheExamples(t *testing.T) {
	d := newDryRun(t)
	files, err := filepath.Glob("../../deploy/examples/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v; want four examples", files, err)
	}
	newer := map[string]string{"sidecar-kuberay-1.7.yaml": `unknown field "spec.autoscalerOptions.args", unknown field "spec.autoscalerOptions.command"`}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		_, err = d.client.Resource(rig.RayClusters).Namespace(metav1.NamespaceDefault).Create(t.Context(), object, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		name := filepath.Base(file)
		switch refused := newer[name]; {
		case refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s: got %v, want it to be refused for %s", name, err, refused)
		}
	}
}
