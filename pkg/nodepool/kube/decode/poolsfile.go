package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// maxPoolsFile bounds a pools file in bytes: some thousand pools.
const maxPoolsFile = 4 << 20

// ReadPools reads the pools file, YAML or JSON: pools with name, minNodes, maxNodes, price, spot, and for a new node
// either its shape (allocatable, labels, taints) or the Cluster Autoscaler's tags; instanceTypes, prices by name; and
// complete, which says that no other pool can get a node.
// An error names pool, field and value.
func ReadPools(in io.Reader) (landing.Config, error) {
	var entries []json.RawMessage
	var prices map[string]float64
	var complete bool
	known := members{"pools": &entries, "instanceTypes": &prices, "complete": &complete}
	if err := readFile(in, maxPoolsFile, "larger than 4 MiB: want a list of pools", known); err != nil {
		return landing.Config{}, err
	}
	config := landing.Config{InstancePrices: prices, Complete: complete}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if err := checkPrice(prices[name]); err != nil {
			return landing.Config{}, fmt.Errorf("instanceTypes.%s: %w", name, err)
		}
	}
	for i, raw := range entries {
		spec, err := readPool(raw)
		if err == nil && slices.ContainsFunc(config.Pools, func(p landing.Spec) bool { return p.Name == spec.Name }) {
			err = fmt.Errorf("name: duplicate")
		}
		if err != nil {
			return landing.Config{}, fmt.Errorf("pools[%d] %q: %w", i, spec.Name, err)
		}
		config.Pools = append(config.Pools, spec)
	}
	return config, nil
}

// readPool reads one pool. It returns the name even if another field is wrong, for the error.
func readPool(raw json.RawMessage) (spec landing.Spec, err error) {
	var shape json.RawMessage
	var tags map[string]string
	var template nodeTemplate
	err = readMembers(raw, members{"name": &spec.Name, "minNodes": &spec.MinNodes, "maxNodes": &spec.MaxNodes,
		"price": &spec.Price, "spot": &spec.Spot, "shape": &shape, "tags": &tags})
	if err != nil {
		return spec, err
	}
	allocatable, labels, taints := map[string]any{}, map[string]string{}, []json.RawMessage{}
	if shape != nil && string(shape) != "null" {
		err = readMembers(shape, members{"allocatable": &allocatable, "labels": &labels, "taints": &taints})
	}
	if err != nil {
		return spec, fmt.Errorf("shape: %w", err)
	}
	switch {
	case spec.Name == "":
		return spec, fmt.Errorf("name: required")
	case spec.MinNodes != nil && *spec.MinNodes < 0:
		return spec, fmt.Errorf("minNodes %d: want 0 or more", *spec.MinNodes)
	case spec.MaxNodes != nil && *spec.MaxNodes < 0:
		return spec, fmt.Errorf("maxNodes %d: want 0 or more", *spec.MaxNodes)
	case spec.MinNodes != nil && spec.MaxNodes != nil && *spec.MinNodes > *spec.MaxNodes:
		return spec, fmt.Errorf("minNodes %d is above maxNodes %d", *spec.MinNodes, *spec.MaxNodes)
	case spec.Price != nil:
		if err := checkPrice(*spec.Price); err != nil {
			return spec, err
		}
	}
	if err := template.readTags(tags); err != nil {
		return spec, fmt.Errorf("tags: %w", err)
	}
	if err := template.readShape(allocatable, labels, taints); err != nil {
		return spec, fmt.Errorf("shape: %w", err)
	}
	if len(template.resources) > 0 {
		object, node := template.node(spec.Name)
		spec.Shape, spec.Allocatable = &object, node.Allocatable
	}
	return spec, nil
}

func checkPrice(price float64) error {
	if price < 0 || price > landing.MaxPrice {
		return fmt.Errorf("price %v: want 0 to %.0f", price, landing.MaxPrice)
	}
	return nil
}

// readShape reads quantities, as text or number, labels, and taints, as key=value:effect or objects with these fields.
func (n *nodeTemplate) readShape(
	allocatable map[string]any, labels map[string]string, taints []json.RawMessage,
) error {
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		if err := n.resource(name, fmt.Sprint(allocatable[name])); err != nil {
			return fmt.Errorf("allocatable: %w", err)
		}
	}
	for key, value := range labels {
		n.label(key, value)
	}
	for i, raw := range taints {
		var text, key, value, effect string
		err := json.Unmarshal(raw, &text)
		if err == nil {
			err = n.taintText(text)
		} else if err = readMembers(raw, members{"key": &key, "value": &value, "effect": &effect}); err == nil {
			err = n.taint(key, value, effect)
		}
		if err != nil {
			return fmt.Errorf("taints[%d]: %w", i, err)
		}
	}
	return nil
}

// node returns the template as a ready node, in both forms.
func (n *nodeTemplate) node(pool string) (sharing.NodeObject, landing.Node) {
	made := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: n.labels},
		Spec:       corev1.NodeSpec{Taints: n.taints},
		Status:     corev1.NodeStatus{Allocatable: n.resources},
	}
	return ForGPUs(made), ForPodFit(sharing.Reader{}, made)
}

// maxPricesFile bounds a prices file in bytes: some ten thousand instance types.
const maxPricesFile = 1 << 20

// currencyCode is the form of a code of ISO 4217.
var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// ReadPrices reads the prices file, YAML or JSON: prices of one node per hour by pool and by instance type, those of
// spot nodes, their currency, and whether the built-in lists apply. An error names field and value.
func ReadPrices(in io.Reader) (price.Book, error) {
	book, lists := price.Book{}, true
	known := members{"currency": &book.Currency, "pools": &book.Pools, "instanceTypes": &book.InstanceTypes,
		"spot": &book.Spot, "lists": &lists}
	if err := readFile(in, maxPricesFile, "larger than 1 MiB: want prices by instance type", known); err != nil {
		return price.Book{}, err
	}
	if book.Currency != "" && !currencyCode.MatchString(book.Currency) {
		return price.Book{}, fmt.Errorf("currency %q: want a code of ISO 4217, such as %s", book.Currency,
			price.ListCurrency)
	}
	for _, table := range []struct {
		field  string
		prices map[string]float64
	}{{"pools", book.Pools}, {"instanceTypes", book.InstanceTypes}, {"spot", book.Spot}} {
		for _, name := range slices.Sorted(maps.Keys(table.prices)) {
			if err := checkPrice(table.prices[name]); err != nil {
				return price.Book{}, fmt.Errorf("%s.%s: %w", table.field, name, err)
			}
		}
	}
	book.WithoutLists = !lists
	return book, nil
}

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

// members are the fields that an object of a configuration file may have, each with where its value goes.
type members map[string]any

// readFile reads a configuration file of at most so many bytes, YAML or JSON.
func readFile(in io.Reader, most int64, larger string, known members) error {
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = errors.New(larger)
	}
	if err != nil {
		return err
	}
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	return readMembers(object, known)
}

// readMembers reads an object all of whose fields must be known. All that can be read is read, and the error is about
// the first field that cannot: it names the field, its value and what would be right.
func readMembers(object json.RawMessage, known members) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(object, &found); err != nil {
		return fmt.Errorf("%s: want an object with %s", fieldpath.Excerpt(string(object), mostShown), known)
	}
	var first error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		into, ok := known[name]
		var err error
		if !ok {
			err = fmt.Errorf("unknown field %q: want %s", name, fieldpath.WantName(name, known.names()))
		} else if json.Unmarshal(found[name], into) != nil {
			shown := fieldpath.Excerpt(string(found[name]), mostShown)
			err = fmt.Errorf("%s: %s: want %s", name, shown, fieldpath.WantType(reflect.TypeOf(into).Elem()))
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// String lists the names.
func (m members) String() string { return strings.Join(m.names(), ", ") }

func (m members) names() []string { return slices.Sorted(maps.Keys(m)) }

// mostShown bounds in bytes what an error shows of a value.
const mostShown = 60
