package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// poolsFile is the form of the file that describes pools.
type poolsFile struct {
	Pools         []poolEntry        `json:"pools"`
	InstanceTypes map[string]float64 `json:"instanceTypes"`
}

type poolEntry struct {
	Name     string            `json:"name"`
	MinNodes *int64            `json:"minNodes"`
	MaxNodes *int64            `json:"maxNodes"`
	Price    *float64          `json:"price"`
	Spot     *bool             `json:"spot"`
	Shape    *shapeEntry       `json:"shape"`
	Tags     map[string]string `json:"tags"`
}

type shapeEntry struct {
	// Allocatable are quantities, as text or number.
	Allocatable map[string]any    `json:"allocatable"`
	Labels      map[string]string `json:"labels"`
	// Taints are key=value:effect or objects with these fields.
	Taints []json.RawMessage `json:"taints"`
}

// ReadPools reads the configuration of pools, YAML or JSON: pools with name, minNodes, maxNodes, price, spot, and as what a new node comes either
// shape (allocatable, labels, taints) or the Cluster Autoscaler's tags; and instanceTypes, prices by name. The error names pool, field and value.
func ReadPools(in io.Reader) (nodepool.PoolsConfig, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nodepool.PoolsConfig{}, err
	}
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nodepool.PoolsConfig{}, err
	}
	var file poolsFile
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nodepool.PoolsConfig{}, fmt.Errorf("want pools and instanceTypes: %w", err)
	}
	config := nodepool.PoolsConfig{InstancePrices: file.InstanceTypes}
	for _, name := range slices.Sorted(maps.Keys(file.InstanceTypes)) {
		if err := checkPrice(file.InstanceTypes[name]); err != nil {
			return nodepool.PoolsConfig{}, fmt.Errorf("instanceTypes.%s: %w", name, err)
		}
	}
	for i, entry := range file.Pools {
		spec, err := entry.spec()
		if err == nil && slices.ContainsFunc(config.Pools, func(p nodepool.PoolSpec) bool { return p.Name == spec.Name }) {
			err = fmt.Errorf("name: it stands twice")
		}
		if err != nil {
			return nodepool.PoolsConfig{}, fmt.Errorf("pools[%d] %q: %w", i, entry.Name, err)
		}
		config.Pools = append(config.Pools, spec)
	}
	return config, nil
}

func checkPrice(price float64) error {
	if price < 0 || price > maxPrice {
		return fmt.Errorf("price %v: want 0 to %.0f", price, maxPrice)
	}
	return nil
}

func (e poolEntry) spec() (nodepool.PoolSpec, error) {
	spec := nodepool.PoolSpec{Name: e.Name, MinNodes: e.MinNodes, MaxNodes: e.MaxNodes, Price: e.Price, Spot: e.Spot}
	switch {
	case e.Name == "":
		return spec, fmt.Errorf("name: it is missing")
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
		object, landing := template.node(e.Name)
		spec.Shape, spec.Allocatable = &object, landing.Allocatable
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
		var text string
		var taint struct{ Key, Value, Effect string }
		err := json.Unmarshal(raw, &text)
		if err == nil {
			err = n.taintText(text)
		} else if err = json.Unmarshal(raw, &taint); err == nil {
			err = n.taint(taint.Key, taint.Value, taint.Effect)
		}
		if err != nil {
			return fmt.Errorf("taints[%d]: %w", i, err)
		}
	}
	return nil
}

// node is the template as a node that would be ready, in both forms.
func (n *nodeTemplate) node(pool string) (nodepool.NodeObject, nodepool.Node) {
	made := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: n.labels},
		Spec:       corev1.NodeSpec{Taints: n.taints},
		Status:     corev1.NodeStatus{Allocatable: n.resources},
	}
	return nodeObjectOf(made), nodeOf(made)
}
