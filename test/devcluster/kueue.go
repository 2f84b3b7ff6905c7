package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Names that Kueue expects. In its manifests they come from kustomize's prefix and namespace (config/default).
const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert"
	kueuePrefix    = "kueue-"
)

// Paths of Kueue's manifests in its module.
const (
	kueueCRDs     = "config/components/crd/bases"
	kueueWebhooks = "config/components/webhook/manifests.yaml"
)

// converted are the kinds with a conversion webhook (config/components/crd/kustomization.yaml).
var converted = []string{
	"localqueues.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io", "cohorts.kueue.x-k8s.io", "workloads.kueue.x-k8s.io",
	"multikueueclusters.kueue.x-k8s.io",
}

// kueueDir is the directory of Kueue's configuration and its webhooks' certificate.
func (cp *controlPlane) kueueDir(names ...string) string {
	return filepath.Join(append([]string{cp.dir, "kueue"}, names...)...)
}

// kueue returns Kueue's arguments and writes its configuration. Visibility on demand is off, because it would write its
// certificate outside the cluster's directory.
func (cp *controlPlane) kueue() ([]string, error) {
	config := map[string]any{
		"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": kueueNamespace,
		"webhook": map[string]any{"host": cp.host, "port": cp.ports["kueue-webhook"],
			"certDir": cp.kueueDir("certs")},
		"health":         map[string]any{"healthProbeBindAddress": cp.address("kueue-health")},
		"metrics":        map[string]any{"bindAddress": cp.address("kueue-metrics")},
		"leaderElection": map[string]any{"leaderElect": false},
		"integrations": map[string]any{"frameworks": []string{"ray.io/raycluster", "ray.io/rayjob",
			"ray.io/rayservice"}},
		// This is Kueue's default; tests rely on it.
		"manageJobsWithoutQueueName": false,
	}
	text, err := sigsyaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("writing Kueue's configuration: %w", err)
	}
	if err := os.MkdirAll(cp.kueueDir("certs"), 0o700); err != nil {
		return nil, fmt.Errorf("writing Kueue's configuration: %w", err)
	}
	if err := os.WriteFile(cp.kueueDir("config.yaml"), text, 0o644); err != nil {
		return nil, fmt.Errorf("writing Kueue's configuration: %w", err)
	}
	gates := append([]string{"VisibilityOnDemand=false"}, cp.kueueGates...)
	return []string{"--config=" + cp.kueueDir("config.yaml"), "--kubeconfig=" + cp.kubeconfigOf(Kueue),
		"--feature-gates=" + strings.Join(gates, ",")}, nil
}

// installKueue creates Kueue's resource definitions and webhook configurations, and the Service through which the API
// server finds the webhooks. The Service has an external name: the API server dials that, and checks the certificate
// for the name of the Service.
func (c *Cluster) installKueue(ctx context.Context) error {
	if !c.options.Kueue {
		return nil
	}
	if err := installCRDs(ctx, c.dynamic, c.kit.File(Kueue, kueueCRDs), c.convertByWebhook); err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": kueueNamespace}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
			"metadata": map[string]any{"name": kueueSecret, "namespace": kueueNamespace}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": kueueService, "namespace": kueueNamespace},
			"spec":     map[string]any{"type": "ExternalName", "externalName": c.plane.host}}},
	}
	webhooks, err := readObjects(c.kit.File(Kueue, kueueWebhooks))
	if err != nil {
		return fmt.Errorf("installing Kueue's webhooks: %w", err)
	}
	for _, object := range webhooks {
		if err := c.pointWebhooks(object); err != nil {
			return fmt.Errorf("installing Kueue's webhooks: %w", err)
		}
	}
	for _, object := range append(objects, webhooks...) {
		if err := c.create(ctx, object); err != nil {
			return fmt.Errorf("installing Kueue: %w", err)
		}
	}
	return nil
}

// webhookClient is how the API server calls Kueue.
func (c *Cluster) webhookClient(path string) map[string]any {
	return map[string]any{"service": map[string]any{
		"namespace": kueueNamespace, "name": kueueService, "port": int64(c.plane.ports["kueue-webhook"]), "path": path,
	}}
}

// convertByWebhook changes resource definitions as Kueue's kustomization does.
func (c *Cluster) convertByWebhook(crd *unstructured.Unstructured) error {
	if !slices.Contains(converted, crd.GetName()) {
		return nil
	}
	return unstructured.SetNestedMap(crd.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig": c.webhookClient("/convert"), "conversionReviewVersions": []any{"v1"},
	}}, "spec", "conversion")
}

// pointWebhooks names a webhook configuration as Kueue's kustomization does, and points its webhooks at this cluster's
// Kueue. Webhooks of other kinds than Kueue's own exclude the system namespaces, so that Kueue can start there.
func (c *Cluster) pointWebhooks(object *unstructured.Unstructured) error {
	object.SetName(kueuePrefix + object.GetName())
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, entry := range webhooks {
		webhook, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: webhook is %T, want an object", object.GetName(), entry)
		}
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = c.webhookClient(path)
		if strings.Contains(path, "kueue-x-k8s-io") {
			continue
		}
		webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", kueueNamespace},
		}}}
	}
	return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
}

// kueueReady copies the certificate of the webhooks from the Secret that Kueue fills, as a kubelet would, and returns
// an error until Kueue serves them.
func (c *Cluster) kueueReady(ctx context.Context) error {
	secret, err := c.client.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	// Kueue waits for the certificate, so write that last.
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		file, data := c.plane.kueueDir("certs", name), secret.Data[name]
		if len(data) == 0 {
			return fmt.Errorf("Secret %s/%s has no %s", kueueNamespace, kueueSecret, name)
		}
		if known, err := os.ReadFile(file); err == nil && bytes.Equal(known, data) {
			continue
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	return httpReady(ctx, "http://"+c.plane.address("kueue-health")+"/readyz")
}

// createdResources are the kinds of Kueue's manifests.
var createdResources = map[string]schema.GroupVersionResource{
	"Namespace": {Version: "v1", Resource: "namespaces"},
	"Secret":    {Version: "v1", Resource: "secrets"},
	"Service":   {Version: "v1", Resource: "services"},
	"MutatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1",
		Resource: "validatingwebhookconfigurations"},
}

func (c *Cluster) create(ctx context.Context, object *unstructured.Unstructured) error {
	resource, known := createdResources[object.GetKind()]
	if !known {
		return fmt.Errorf("creating %s %s: unknown kind", object.GetKind(), object.GetName())
	}
	var err error
	if namespace := object.GetNamespace(); namespace != "" {
		_, err = c.dynamic.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = c.dynamic.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// readObjects reads all objects of a YAML file.
func readObjects(file string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
