package env

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cases follow k8s.io/kubernetes/third_party/forked/golang/expansion.
func TestExpand(t *testing.T) {
	env := Vars{"A": "1", "B": "$(A)", "EMPTY": ""}
	for _, c := range []struct{ name, text, want string }{
		{"a name is replaced", "x$(A)y", "x1y"},
		{"a value is not expanded again", "$(B)", "$(A)"},
		{"an empty value is a value", "[$(EMPTY)]", "[]"},
		{"an unknown name stays", "$(NOPE)-$(A)", "$(NOPE)-1"},
		{"two dollars are one", "$$(A)", "$(A)"},
		{"three dollars are one and a reference", "$$$(A)", "$1"},
		{"shell syntax stays", "${A} $A $", "${A} $A $"},
		{"an open reference stays", "$(A", "$(A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Expand(c.text, env); got != c.want {
				t.Errorf("Expand(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// cluster is a fake Source.
type cluster map[string]map[string]string

func (c cluster) get(kind, name string) (map[string]string, error) {
	if values, ok := c[kind+"/"+name]; ok {
		return values, nil
	}
	return nil, errors.New(kind + " " + name + " not found")
}

func (c cluster) ConfigMap(_ context.Context, _, name string) (map[string]string, error) {
	return c.get("configmap", name)
}

func (c cluster) Secret(_ context.Context, _, name string) (map[string]string, error) {
	return c.get("secret", name)
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func secretKey(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional,
	}}
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c1-gpu-worker-x", Namespace: "ml", UID: "u-1",
			Labels: map[string]string{"ray.io/group": "gpu"},
		},
		Spec:   corev1.PodSpec{NodeName: "gpu-0"},
		Status: corev1.PodStatus{PodIP: "127.1.2.9", HostIP: "127.1.2.1"},
	}
}

func TestResolve(t *testing.T) {
	objects := cluster{
		"secret/token":  {"auth_token": "s3cret"},
		"configmap/all": {"ONE": "1", "TWO": "2", "not a name": "x"},
	}
	for _, c := range []struct {
		name string
		c    corev1.Container
		want Vars
	}{
		{
			"KubeRay's variables come from the pod",
			corev1.Container{Env: []corev1.EnvVar{
				{Name: "RAY_CLOUD_INSTANCE_ID", ValueFrom: field("metadata.name")},
				{Name: "RAY_NODE_TYPE_NAME", ValueFrom: field("metadata.labels['ray.io/group']")},
				{Name: "RAY_CLUSTER_NAMESPACE", ValueFrom: field("metadata.namespace")},
				{Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "NODE", ValueFrom: field("spec.nodeName")},
			}},
			Vars{"RAY_CLOUD_INSTANCE_ID": "c1-gpu-worker-x", "RAY_NODE_TYPE_NAME": "gpu", "RAY_CLUSTER_NAMESPACE": "ml", "IP": "127.1.2.9", "NODE": "gpu-0"},
		},
		{
			"a reference sees earlier definitions only",
			corev1.Container{Env: []corev1.EnvVar{
				{Name: "A", Value: "$(B)"}, {Name: "B", Value: "b"}, {Name: "C", Value: "$(B)c"},
			}},
			Vars{"A": "$(B)", "B": "b", "C": "bc"},
		},
		{
			"the last of two equal names wins",
			corev1.Container{Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}, {Name: "B", Value: "$(A)"}}},
			Vars{"A": "2", "B": "2"},
		},
		{
			"env overrides envFrom, and sees it",
			corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "all"}}}},
				Env:     []corev1.EnvVar{{Name: "P_ONE", Value: "own"}, {Name: "X", Value: "$(P_TWO)"}},
			},
			Vars{"P_ONE": "own", "P_TWO": "2", "X": "2"},
		},
		{
			"the key of a Secret is found, an optional one can be missing",
			corev1.Container{Env: []corev1.EnvVar{
				{Name: "RAY_AUTH_TOKEN", ValueFrom: secretKey("token", "auth_token", false)},
				{Name: "NONE", ValueFrom: secretKey("token", "nope", true)},
				{Name: "NONE_AT_ALL", ValueFrom: secretKey("nope", "nope", true)},
			}},
			Vars{"RAY_AUTH_TOKEN": "s3cret"},
		},
		{
			"resources are rounded up to whole divisors",
			corev1.Container{
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}},
				Env: []corev1.EnvVar{
					{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
					{Name: "MILLI", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: resource.MustParse("1m")}}},
					{Name: "MI", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
				},
			},
			Vars{"CPU": "2", "MILLI": "1500", "MI": "1024"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Resolve(t.Context(), Vars{}, testPod(), &c.c, objects)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveNamesWhatIsMissing(t *testing.T) {
	objects := cluster{"secret/token": {}}
	for _, c := range []struct {
		source *corev1.EnvVarSource
		want   string
	}{
		{secretKey("token", "auth_token", false), "resolving variable X: couldn't find key auth_token in Secret token"},
		{secretKey("nope", "auth_token", false), "resolving variable X: secret nope not found"},
		{field("spec.nope"), `resolving variable X: unsupported field path "spec.nope"`},
	} {
		container := corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: c.source}}}
		_, err := Resolve(t.Context(), Vars{}, testPod(), &container, objects)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Resolve: %v; want an error with %q", err, c.want)
		}
	}
}
