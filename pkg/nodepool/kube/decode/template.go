package decode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Where users describe to the Cluster Autoscaler the nodes of a group without nodes: tags of an Auto Scaling group on
// AWS; tags of a scale set on Azure, where _ stands for a slash and ~2 for an underscore; and annotations of a
// MachineDeployment with Cluster API (kubernetes/autoscaler, cloudprovider/aws, azure and clusterapi).
const (
	templateTag      = "k8s.io/cluster-autoscaler/node-template/"
	azureTemplateTag = "k8s.io_cluster-autoscaler_node-template_"
	capacityKey      = "capacity.cluster-autoscaler.kubernetes.io/"
)

// nodeTemplate is what tags say about a new node.
type nodeTemplate struct {
	resources corev1.ResourceList
	labels    map[string]string
	taints    []corev1.Taint
}

// readTags reads the tags that describe a new node, and ignores the others. An error names the tag and a correct value.
func (n *nodeTemplate) readTags(tags map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if err := n.readTag(key, tags[key]); err != nil {
			return fmt.Errorf("tag %s=%q: %w", key, tags[key], err)
		}
	}
	return n.readCapacity(tags)
}

func (n *nodeTemplate) readTag(key, value string) error {
	rest, isTemplate := strings.CutPrefix(key, templateTag)
	if azure, ok := strings.CutPrefix(key, azureTemplateTag); ok {
		isTemplate = true
		rest = strings.ReplaceAll(strings.ReplaceAll(azure, "_", "/"), "~2", "_")
	}
	kind, name, named := strings.Cut(rest, "/")
	if !isTemplate || !named {
		return nil
	}
	switch kind {
	case "resources":
		return n.resource(name, value)
	case "label":
		n.label(name, value)
	case "taint":
		content, effect, ok := strings.Cut(value, ":")
		if !ok {
			return fmt.Errorf("want value:effect, for example present:NoSchedule")
		}
		return n.taint(name, content, effect)
	}
	return nil
}

// readCapacity reads the annotations of Cluster API.
func (n *nodeTemplate) readCapacity(annotations map[string]string) error {
	keys := map[string]string{
		"cpu": "cpu", "memory": "memory", "ephemeral-disk": "ephemeral-storage", "maxPods": "pods",
	}
	for name, key := range keys {
		if value, set := annotations[capacityKey+name]; set {
			if err := n.resource(key, value); err != nil {
				return fmt.Errorf("annotation %s%s: %w", capacityKey, name, err)
			}
		}
	}
	if gpu := annotations[capacityKey+"gpu-type"]; gpu != "" {
		if err := n.resource(gpu, annotations[capacityKey+"gpu-count"]); err != nil {
			return fmt.Errorf("annotation %sgpu-count: %w", capacityKey, err)
		}
	}
	for pair := range strings.FieldsFuncSeq(annotations[capacityKey+"labels"], isComma) {
		key, value, _ := strings.Cut(pair, "=")
		n.label(key, value)
	}
	for text := range strings.FieldsFuncSeq(annotations[capacityKey+"taints"], isComma) {
		if err := n.taintText(text); err != nil {
			return fmt.Errorf("annotation %staints: %w", capacityKey, err)
		}
	}
	return nil
}

func isComma(c rune) bool { return c == ',' }

func (n *nodeTemplate) resource(name, value string) error {
	quantity, err := resource.ParseQuantity(value)
	switch {
	case err != nil:
		return fmt.Errorf("resource %s: %q is not a quantity: %w", name, value, err)
	case quantity.Sign() < 0:
		return fmt.Errorf("resource %s: %s is negative", name, value)
	case extended(name) && quantity.MilliValue()%1000 != 0:
		return fmt.Errorf("resource %s: %s is not a whole number", name, value)
	}
	if n.resources == nil {
		n.resources = corev1.ResourceList{}
	}
	n.resources[corev1.ResourceName(name)] = quantity
	return nil
}

func (n *nodeTemplate) label(key, value string) {
	if n.labels == nil {
		n.labels = map[string]string{}
	}
	n.labels[key] = value
}

// taintText reads key=value:effect, or key:effect, as kubectl writes taints.
func (n *nodeTemplate) taintText(text string) error {
	name, effect, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("taint %q: want key=value:effect", text)
	}
	key, value, _ := strings.Cut(name, "=")
	return n.taint(key, value, effect)
}

func (n *nodeTemplate) taint(key, value, effect string) error {
	switch corev1.TaintEffect(effect) {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
	default:
		return fmt.Errorf("taint %s: effect %q: want NoSchedule, NoExecute or PreferNoSchedule", key, effect)
	}
	n.taints = append(n.taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	return nil
}
