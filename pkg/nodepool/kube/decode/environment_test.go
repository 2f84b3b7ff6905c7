package decode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestVariablesThatAreNotReadAreReported(t *testing.T) {
	limits := raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One, "memory": raydemand.Whole(1 << 30)}
	for _, c := range []struct {
		name, container string
		want            raydemand.Bundle
		reported        string // severity and what was seen
		fixed           bool
	}{
		{"none", ``, limits, "", false},
		{"a ConfigMap that may have it", `envFrom: [{configMapRef: {name: ray-env}}]`, limits, "info ConfigMap ray-env", false},
		{"a Secret that may have it", `envFrom: [{prefix: APP_, configMapRef: {name: app}}, {prefix: RAY_, secretRef: {name: keys}}]`, limits, "info Secret keys", false},
		{"a prefix that it has not", `envFrom: [{prefix: APP_, secretRef: {name: keys}}]`, limits, "", false},
		{"env wins", `env: [{name: RAY_OVERRIDE_RESOURCES, value: ""}], envFrom: [{configMapRef: {name: ray-env}}]`, limits, "", false},
		{"it comes from elsewhere", `env: [{name: RAY_OVERRIDE_RESOURCES, valueFrom: {configMapKeyRef: {name: c, key: k}}}]`, raydemand.Bundle{},
			"warning RAY_OVERRIDE_RESOURCES by valueFrom", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.container != "" {
				c.container += ", "
			}
			cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: objectOf(t, `
spec: {headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}, workerGroupSpecs: [{groupName: gpu, maxReplicas: 5, template: {spec: {containers: [
  {`+c.container+`name: ray, resources: {limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}}]}}}]}`)}, nil)
			if got := cluster.Groups[0]; !got.Resources.Equal(c.want) || (got.GPUs.Fixed != "") != c.fixed {
				t.Errorf("announces %v, fixed by %q; want %v, fixed: %t", got.Resources, got.GPUs.Fixed, c.want, c.fixed)
			}
			if got := environmentReported(cluster); got != c.reported {
				t.Errorf("reported %q, want %q", got, c.reported)
			}
		})
	}
}

func TestVariablesThatMayConfigureTheHeadAreReported(t *testing.T) {
	from := func(prefix string) []corev1.EnvFromSource { return []corev1.EnvFromSource{{Prefix: prefix}} }
	elsewhere := []corev1.EnvVar{{Name: "RAY_AUTH_MODE", ValueFrom: &corev1.EnvVarSource{}}}
	for name, c := range map[string]struct {
		spec   map[string]any
		change func(*corev1.Container)
		want   string
	}{
		"a source that may have both": {change: func(c *corev1.Container) { c.EnvFrom = from("") },
			want: "info RAY_AUTH_MODE perhaps by envFrom, info RAY_USE_TLS perhaps by envFrom"},
		"one that has neither": {change: func(c *corev1.Container) { c.EnvFrom = from("RAY_OTHER_") }},
		"env wins": {want: "info RAY_USE_TLS perhaps by envFrom", change: func(c *corev1.Container) {
			c.Env, c.EnvFrom = []corev1.EnvVar{{Name: "RAY_AUTH_MODE"}}, from("")
		}},
		"a value from elsewhere": {change: func(c *corev1.Container) { c.Env = elsewhere }, want: "warning RAY_AUTH_MODE by valueFrom"},
		"the spec says it": {spec: map[string]any{"authOptions": map[string]any{"mode": "token"}, "tlsOptions": map[string]any{"enabled": true}},
			change: func(c *corev1.Container) { c.EnvFrom = from("") }},
	} {
		t.Run(name, func(t *testing.T) {
			head := pod("h", headNode, "headgroup", func(p *corev1.Pod) { c.change(&p.Spec.Containers[0]) })
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "llm"}, "spec": c.spec}}
			if got := environmentReported(Cluster(sharing.Reader{}, object, kept(head))); got != c.want {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
}

// environmentReported lists the findings about variables.
func environmentReported(cluster nodepool.Cluster) (reported string) {
	for _, f := range cluster.Findings {
		if f.Code == EnvironmentUnknown {
			if reported != "" {
				reported += ", "
			}
			reported += string(f.Severity) + " " + f.Seen
		}
	}
	return reported
}
