package nodeagent

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// keyValues reads what a container's environment and volumes refer to.
type keyValues interface {
	// ConfigMap returns the keys of a ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	// Secret returns the keys of a Secret, decoded.
	Secret(ctx context.Context, namespace, name string) (map[string]string, error)
}

// environment is a container's environment while it is put together. Order does not matter to a process; a name
// stands once, with the last value it was given.
type environment map[string]string

// list returns NAME=value lines in the order of their names.
func (e environment) list() []string {
	lines := make([]string, 0, len(e))
	for name, value := range e {
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	return lines
}

// resolveEnv computes what the container's env and envFrom say, with the kubelet's rules: first all of envFrom, then
// env in its order, where $(NAME) means what has been defined before it; the last definition of a name wins. base is
// what is defined before everything.
func resolveEnv(
	ctx context.Context, base environment, pod *corev1.Pod, c *corev1.Container, from keyValues,
) (environment, error) {
	env := environment{}
	for name, value := range base {
		env[name] = value
	}
	for _, source := range c.EnvFrom {
		if err := addAll(ctx, env, pod.Namespace, source, from); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		value, found := expand(v.Value, env), true
		if v.ValueFrom != nil {
			var err error
			if value, found, err = valueFrom(ctx, pod, c, v.ValueFrom, from); err != nil {
				return nil, fmt.Errorf("resolving variable %s: %w", v.Name, err)
			}
		}
		if found {
			env[v.Name] = value
		}
	}
	return env, nil
}

// addAll adds a ConfigMap's or Secret's keys. Keys that are no names of variables are left out, as the kubelet does.
func addAll(ctx context.Context, env environment, namespace string, source corev1.EnvFromSource, from keyValues) error {
	var values map[string]string
	var err error
	optional := false
	switch {
	case source.ConfigMapRef != nil:
		optional = isTrue(source.ConfigMapRef.Optional)
		values, err = from.ConfigMap(ctx, namespace, source.ConfigMapRef.Name)
	case source.SecretRef != nil:
		optional = isTrue(source.SecretRef.Optional)
		values, err = from.Secret(ctx, namespace, source.SecretRef.Name)
	}
	if err != nil && !optional {
		return err
	}
	for key, value := range values {
		if name := source.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
			env[name] = value
		}
	}
	return nil
}

// valueFrom resolves a reference. found is false for an optional reference to something that is not there.
func valueFrom(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, ref *corev1.EnvVarSource, from keyValues,
) (value string, found bool, err error) {
	switch {
	case ref.FieldRef != nil:
		value, err = fieldValue(pod, ref.FieldRef.FieldPath)
		return value, err == nil, err
	case ref.ResourceFieldRef != nil:
		value, err = resourceValue(c, ref.ResourceFieldRef)
		return value, err == nil, err
	case ref.ConfigMapKeyRef != nil:
		values, err := from.ConfigMap(ctx, pod.Namespace, ref.ConfigMapKeyRef.Name)
		return keyOf(values, err, "ConfigMap", ref.ConfigMapKeyRef.Name, ref.ConfigMapKeyRef.Key,
			ref.ConfigMapKeyRef.Optional)
	case ref.SecretKeyRef != nil:
		values, err := from.Secret(ctx, pod.Namespace, ref.SecretKeyRef.Name)
		return keyOf(values, err, "Secret", ref.SecretKeyRef.Name, ref.SecretKeyRef.Key, ref.SecretKeyRef.Optional)
	}
	return "", false, fmt.Errorf("unsupported kind of reference")
}

func keyOf(values map[string]string, err error, kind, name, key string, optional *bool) (string, bool, error) {
	value, found := values[key]
	if found || isTrue(optional) {
		return value, found, nil
	}
	if err != nil {
		return "", false, err
	}
	return "", false, fmt.Errorf("couldn't find key %s in %s %s", key, kind, name)
}

// fieldValue resolves the downward API's field paths; the pod's status carries its addresses already.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
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

// subscript reads field['name'].
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// keyValueLines prints a map as the downward API volume does.
func keyValueLines(m map[string]string) string {
	var lines []string
	for _, key := range sortedKeys(m) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// resourceValue resolves limits.cpu and the like, rounded up to whole divisors. A limit that is not set is 0: the
// kubelet would give the node's allocatable amount, which nothing that runs here asks for.
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

// expand replaces $(NAME) by the variable's value. A name that is not defined stays as it is written, and $$ is one $:
// the rules of Kubernetes for env, command and args.
func expand(text string, env environment) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		end := strings.IndexByte(text[i:], ')')
		switch {
		case text[i+1] == '$':
			out.WriteByte('$')
			i++
		case text[i+1] == '(' && end > 0:
			reference := text[i : i+end+1]
			if value, ok := env[reference[2:len(reference)-1]]; ok {
				reference = value
			}
			out.WriteString(reference)
			i += end
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

// baseEnvironment is what every container of the pod starts from. Nothing of the agent's own environment is in it.
func (a *Agent) baseEnvironment(p *pod, image string) environment {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if image != "" {
		path = image + ":" + path
	}
	env := environment{
		"PATH":     path,
		"HOME":     p.dirs.home,
		"TMPDIR":   p.dirs.tmp,
		"HOSTNAME": p.name(),
		"LANG":     "C.UTF-8",
	}
	if host, port, err := net.SplitHostPort(a.cfg.APIServer); err == nil {
		env["KUBERNETES_SERVICE_HOST"] = host
		env["KUBERNETES_SERVICE_PORT"] = port
		env["KUBERNETES_SERVICE_PORT_HTTPS"] = port
	}
	return env
}

func isTrue(b *bool) bool { return b != nil && *b }
