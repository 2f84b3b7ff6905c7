package env

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// FieldValue resolves a field path of the downward API. The pod's status must have its addresses.
func FieldValue(pod *corev1.Pod, path string) (string, error) {
	if name, ok := subscript(path, "metadata.labels"); ok {
		return pod.Labels[name], nil
	}
	if name, ok := subscript(path, "metadata.annotations"); ok {
		return pod.Annotations[name], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return keyValueLines(pod.Labels), nil
	case "metadata.annotations":
		return keyValueLines(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	}
	return "", fmt.Errorf("unsupported field path %q", path)
}

// subscript returns the name in field['name'].
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// keyValueLines formats a map as a downward API volume does.
func keyValueLines(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceValue resolves limits.cpu and similar paths, rounded up to whole divisors. A limit that is not set is 0; the
// kubelet would use the allocatable amount of the node, which no pod in dev clusters asks for.
func resourceValue(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}[kind]
	if name == "" || (kind != "limits" && kind != "requests") {
		return "", fmt.Errorf("unsupported resource %q", ref.Resource)
	}
	amount, divisor := list[corev1.ResourceName(name)], ref.Divisor
	if divisor.IsZero() {
		divisor.Set(1)
	}
	if name == string(corev1.ResourceCPU) {
		return fmt.Sprint(ceilDivide(amount.MilliValue(), divisor.MilliValue())), nil
	}
	return fmt.Sprint(ceilDivide(amount.Value(), divisor.Value())), nil
}

func ceilDivide(a, b int64) int64 { return (a + b - 1) / b }
