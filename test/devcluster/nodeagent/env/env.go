package env

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Source reads the objects that a container's environment refers to.
type Source interface {
	// ConfigMap returns the keys and values of a ConfigMap.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error)
	// Secret returns the keys and decoded values of a Secret.
	Secret(ctx context.Context, namespace, name string) (map[string]string, error)
}

// Vars are environment variables by name.
type Vars map[string]string

// List returns NAME=value lines, sorted.
func (v Vars) List() []string {
	lines := make([]string, 0, len(v))
	for name, value := range v {
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	return lines
}

// Resolve adds the variables of the container's envFrom and env to a copy of base, with the kubelet's rules. All of
// envFrom comes first, then env in its order, where $(NAME) refers to earlier definitions. The last definition of a
// name wins.
func Resolve(ctx context.Context, base Vars, pod *corev1.Pod, c *corev1.Container, from Source) (Vars, error) {
	vars := Vars{}
	maps.Copy(vars, base)
	for _, source := range c.EnvFrom {
		if err := addAll(ctx, vars, pod.Namespace, source, from); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		value, found := Expand(v.Value, vars), true
		if v.ValueFrom != nil {
			var err error
			if value, found, err = valueFrom(ctx, pod, c, v.ValueFrom, from); err != nil {
				return nil, fmt.Errorf("resolving variable %s: %w", v.Name, err)
			}
		}
		if found {
			vars[v.Name] = value
		}
	}
	return vars, nil
}

// addAll adds the keys of a ConfigMap or Secret. Like the kubelet, it skips keys that are no valid names of variables.
func addAll(ctx context.Context, vars Vars, namespace string, source corev1.EnvFromSource, from Source) error {
	var values map[string]string
	var err error
	optional := false
	switch {
	case source.ConfigMapRef != nil:
		optional = ptr.Deref(source.ConfigMapRef.Optional, false)
		values, err = from.ConfigMap(ctx, namespace, source.ConfigMapRef.Name)
	case source.SecretRef != nil:
		optional = ptr.Deref(source.SecretRef.Optional, false)
		values, err = from.Secret(ctx, namespace, source.SecretRef.Name)
	}
	if err != nil && !optional {
		return err
	}
	for key, value := range values {
		if name := source.Prefix + key; len(validation.IsEnvVarName(name)) == 0 {
			vars[name] = value
		}
	}
	return nil
}

// valueFrom resolves a reference. found is false if the reference is optional and its object does not exist.
func valueFrom(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, ref *corev1.EnvVarSource, from Source,
) (value string, found bool, err error) {
	switch {
	case ref.FieldRef != nil:
		value, err = FieldValue(pod, ref.FieldRef.FieldPath)
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
	const want = "fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"
	return "", false, errors.New("unsupported valueFrom: want " + want)
}

func keyOf(values map[string]string, err error, kind, name, key string, optional *bool) (string, bool, error) {
	value, found := values[key]
	if found || ptr.Deref(optional, false) {
		return value, found, nil
	}
	if err != nil {
		return "", false, err
	}
	return "", false, fmt.Errorf("couldn't find key %s in %s %s", key, kind, name)
}

// Expand replaces $(NAME) with the variable's value. References to undefined names stay, and $$ becomes one $, which
// are the rules of Kubernetes for env, command and args.
func Expand(text string, vars Vars) string {
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
			if value, ok := vars[reference[2:len(reference)-1]]; ok {
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
