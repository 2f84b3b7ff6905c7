package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// poolEntry is one pool of the pools file.
type poolEntry struct {
	Name     string
	MinNodes *int64
	MaxNodes *int64
	Price    *float64
	Spot     *bool
	Shape    *shapeEntry
	Tags     map[string]string
}

type shapeEntry struct {
	// Allocatable are quantities, as text or number.
	Allocatable map[string]any
	Labels      map[string]string
	// Taints are key=value:effect or objects with these fields.
	Taints []json.RawMessage
}

// maxPoolsFile bounds a pools file in bytes: some thousand pools.
const maxPoolsFile = 4 << 20

// ReadPools reads the pools file, YAML or JSON: pools with name, minNodes, maxNodes, price, spot, and for a new node
// either its shape (allocatable, labels, taints) or the Cluster Autoscaler's tags; instanceTypes, prices by name; and
// complete, which says that no other pool can get a node.
// An error names pool, field and value.
func ReadPools(in io.Reader) (landing.Config, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxPoolsFile+1))
	if err == nil && len(text) > maxPoolsFile {
		err = errors.New("larger than 4 MiB: want a list of pools")
	}
	if err != nil {
		return landing.Config{}, err
	}
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return landing.Config{}, err
	}
	var entries []json.RawMessage
	var prices map[string]float64
	var complete bool
	known := members{"pools": &entries, "instanceTypes": &prices, "complete": &complete}
	if err := readMembers(object, known); err != nil {
		return landing.Config{}, err
	}
	config := landing.Config{InstancePrices: prices, Complete: complete}
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if err := checkPrice(prices[name]); err != nil {
			return landing.Config{}, fmt.Errorf("instanceTypes.%s: %w", name, err)
		}
	}
	for i, raw := range entries {
		entry, err := readPool(raw)
		var spec landing.Spec
		if err == nil {
			spec, err = entry.spec()
		}
		if err == nil && slices.ContainsFunc(config.Pools, func(p landing.Spec) bool { return p.Name == spec.Name }) {
			err = fmt.Errorf("name: duplicate")
		}
		if err != nil {
			return landing.Config{}, fmt.Errorf("pools[%d] %q: %w", i, entry.Name, err)
		}
		config.Pools = append(config.Pools, spec)
	}
	return config, nil
}

// readPool reads one pool. It returns the name even if another field is wrong, for the error.
func readPool(raw json.RawMessage) (poolEntry, error) {
	var e poolEntry
	var shape json.RawMessage
	err := readMembers(raw, members{
		"name":     &e.Name,
		"minNodes": &e.MinNodes,
		"maxNodes": &e.MaxNodes,
		"price":    &e.Price,
		"spot":     &e.Spot,
		"shape":    &shape,
		"tags":     &e.Tags,
	})
	if err != nil || shape == nil || string(shape) == "null" {
		return e, err
	}
	e.Shape = &shapeEntry{}
	err = readMembers(shape,
		members{"allocatable": &e.Shape.Allocatable, "labels": &e.Shape.Labels, "taints": &e.Shape.Taints})
	if err != nil {
		return e, fmt.Errorf("shape: %w", err)
	}
	return e, nil
}

func checkPrice(price float64) error {
	if price < 0 || price > landing.MaxPrice {
		return fmt.Errorf("price %v: want 0 to %.0f", price, landing.MaxPrice)
	}
	return nil
}

func (e poolEntry) spec() (landing.Spec, error) {
	spec := landing.Spec{Name: e.Name, MinNodes: e.MinNodes, MaxNodes: e.MaxNodes, Price: e.Price, Spot: e.Spot}
	switch {
	case e.Name == "":
		return spec, fmt.Errorf("name: required")
	case e.MinNodes != nil && *e.MinNodes < 0:
		return spec, fmt.Errorf("minNodes %d: want 0 or more", *e.MinNodes)
	case e.MaxNodes != nil && *e.MaxNodes < 0:
		return spec, fmt.Errorf("maxNodes %d: want 0 or more", *e.MaxNodes)
	case e.MinNodes != nil && e.MaxNodes != nil && *e.MinNodes > *e.MaxNodes:
		return spec, fmt.Errorf("minNodes %d is above maxNodes %d", *e.MinNodes, *e.MaxNodes)
	}
	if e.Price != nil {
		if err := checkPrice(*e.Price); err != nil {
			return spec, err
		}
	}
	var template nodeTemplate
	if err := template.readTags(e.Tags); err != nil {
		return spec, fmt.Errorf("tags: %w", err)
	}
	if e.Shape != nil {
		if err := template.readShape(*e.Shape); err != nil {
			return spec, fmt.Errorf("shape: %w", err)
		}
	}
	if len(template.resources) > 0 {
		object, node := template.node(e.Name)
		spec.Shape, spec.Allocatable = &object, node.Allocatable
	}
	return spec, nil
}

func (n *nodeTemplate) readShape(shape shapeEntry) error {
	for _, name := range slices.Sorted(maps.Keys(shape.Allocatable)) {
		if err := n.resource(name, fmt.Sprint(shape.Allocatable[name])); err != nil {
			return fmt.Errorf("allocatable: %w", err)
		}
	}
	for key, value := range shape.Labels {
		n.label(key, value)
	}
	for i, raw := range shape.Taints {
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
