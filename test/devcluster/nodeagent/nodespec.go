package nodeagent

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// NodeSpec describes the Node object of one node.
type NodeSpec struct {
	// Name of the Node object.
	Name string `json:"name"`
	// Labels, in addition to kubernetes.io/hostname, kubernetes.io/os and kubernetes.io/arch.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Node object.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Taints of the Node object.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Capacity by resource name. The default for `pods` is 110.
	Capacity map[string]string `json:"capacity"`
	// Allocatable by resource name. The default for each resource is its capacity.
	Allocatable map[string]string `json:"allocatable,omitempty"`
}

// defaultPods is the kubelet's default limit of pods per node.
const defaultPods = "110"

// LoadNodes reads a YAML or JSON list of NodeSpecs. Unknown fields are errors. Errors have the position and the name of
// the node, the field and the value, and the file if r has a Name method as an *os.File does.
func LoadNodes(r io.Reader) ([]NodeSpec, error) {
	file := "nodes"
	if named, ok := r.(interface{ Name() string }); ok {
		file = named.Name()
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var nodes []NodeSpec
	if err := yaml.UnmarshalStrict(data, &nodes); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("reading %s: no nodes", file)
	}
	seen := map[string]bool{}
	for i, n := range nodes {
		if err := n.Validate(); err != nil {
			return nil, fmt.Errorf("reading %s: node %d: %w", file, i, err)
		}
		if seen[n.Name] {
			return nil, fmt.Errorf("reading %s: node %d: another node has the name %q", file, i, n.Name)
		}
		seen[n.Name] = true
	}
	return nodes, nil
}

// Validate returns an error with node, field and value if the API server would reject the node.
func (n NodeSpec) Validate() error {
	if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
		return fmt.Errorf("name %q: %s", n.Name, problems[0])
	}
	if err := n.validateLabels(); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	if err := n.validateTaints(); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	if err := n.validateResources(); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

func (n NodeSpec) validateLabels() error {
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		value := n.Labels[key]
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("labels: key %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Errorf("labels: %s: value %q: %s", key, value, problems[0])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("annotations: key %q: %s", key, problems[0])
		}
	}
	return nil
}

func (n NodeSpec) validateTaints() error {
	effects := []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
	}
	for i, taint := range n.Taints {
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			return fmt.Errorf("taints[%d].key: value %q: %s", i, taint.Key, problems[0])
		}
		if !slices.Contains(effects, taint.Effect) {
			return fmt.Errorf("taints[%d].effect: value %q: want one of %q", i, taint.Effect, effects)
		}
	}
	return nil
}

func (n NodeSpec) validateResources() error {
	if len(n.Capacity) == 0 {
		return errors.New("capacity: missing")
	}
	capacity, err := quantities("capacity", n.Capacity)
	if err != nil {
		return err
	}
	allocatable, err := quantities("allocatable", n.Allocatable)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(n.Allocatable)) {
		name := corev1.ResourceName(key)
		most, exists := capacity[name]
		if amount := allocatable[name]; !exists || amount.Cmp(most) > 0 {
			return fmt.Errorf("allocatable: %s: value %q is more than the capacity %q", key, n.Allocatable[key],
				n.Capacity[key])
		}
	}
	return nil
}

// resources returns capacity and allocatable with their defaults.
func (n NodeSpec) resources() (capacity, allocatable corev1.ResourceList, err error) {
	if capacity, err = quantities("capacity", n.Capacity); err != nil {
		return nil, nil, err
	}
	if _, ok := capacity[corev1.ResourcePods]; !ok {
		capacity[corev1.ResourcePods] = resource.MustParse(defaultPods)
	}
	if allocatable, err = quantities("allocatable", n.Allocatable); err != nil {
		return nil, nil, err
	}
	for name, amount := range capacity {
		if _, ok := allocatable[name]; !ok {
			allocatable[name] = amount
		}
	}
	return capacity, allocatable, nil
}

// object returns the Node object without what the node reports about itself.
func (n NodeSpec) object() (*corev1.Node, error) {
	capacity, allocatable, err := n.resources()
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: maps.Clone(n.Annotations)},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable},
	}, nil
}

func quantities(field string, amounts map[string]string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return nil, fmt.Errorf("%s: name %q: %s", field, name, problems[0])
		}
		amount, err := resource.ParseQuantity(amounts[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: value %q: %w", field, name, amounts[name], err)
		}
		if amount.Sign() < 0 {
			return nil, fmt.Errorf("%s: %s: value %q is negative", field, name, amounts[name])
		}
		list[corev1.ResourceName(name)] = amount
	}
	return list, nil
}
