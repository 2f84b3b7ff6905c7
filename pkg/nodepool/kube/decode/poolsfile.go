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
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// maxPoolsFile bounds a pools file in bytes: some thousand pools.
const maxPoolsFile = 4 << 20

// ReadPools reads the pools file, YAML or JSON: pools with name, minNodes, maxNodes, price, spot, and the shape of a
// new node (allocatable, labels, taints); instanceTypes, prices by name; and complete, which says that no other pool
// can get a node.
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
	err = readMembers(raw, members{"name": &spec.Name, "minNodes": &spec.MinNodes, "maxNodes": &spec.MaxNodes,
		"price": &spec.Price, "spot": &spec.Spot, "shape": &shape})
	if err != nil {
		return spec, err
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
	if shape == nil || string(shape) == "null" {
		return spec, nil
	}
	node, err := shapeNode(shape)
	if err != nil {
		return spec, fmt.Errorf("shape: %w", err)
	}
	if node.Name = spec.Name; len(node.Status.Allocatable) > 0 {
		object := ForGPUs(node)
		spec.Shape, spec.Allocatable = &object, ForPodFit(sharing.Reader{}, node).Allocatable
	}
	return spec, nil
}

func checkPrice(price float64) error {
	if price < 0 || price > landing.MaxPrice {
		return fmt.Errorf("price %v: want 0 to %.0f", price, landing.MaxPrice)
	}
	return nil
}

// shapeNode reads a new node: quantities, as text or number, labels, and taints, as key=value:effect or objects with
// these fields.
func shapeNode(shape json.RawMessage) (*corev1.Node, error) {
	allocatable, taints, node := map[string]any{}, []json.RawMessage{}, &corev1.Node{}
	err := readMembers(shape, members{"allocatable": &allocatable, "labels": &node.Labels, "taints": &taints})
	if err != nil {
		return nil, err
	}
	node.Status.Allocatable = corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(allocatable)) {
		amount, err := shapeAmount(name, fieldpath.Shown(allocatable[name]))
		if err != nil {
			return nil, fmt.Errorf("allocatable: resource %s: %w", name, err)
		}
		node.Status.Allocatable[corev1.ResourceName(name)] = amount
	}
	for i, raw := range taints {
		taint, err := shapeTaint(raw)
		if err != nil {
			return nil, fmt.Errorf("taints[%d]: %w", i, err)
		}
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
	return node, nil
}

func shapeAmount(name, value string) (amount resource.Quantity, err error) {
	amount, err = resource.ParseQuantity(value)
	switch {
	case err != nil:
		return amount, fmt.Errorf("%q is not a quantity: %w", value, err)
	case amount.Sign() < 0:
		return amount, fmt.Errorf("%s is negative", value)
	case extended(name) && amount.MilliValue()%1000 != 0:
		return amount, fmt.Errorf("%s is not a whole number", value)
	}
	return amount, nil
}

// shapeTaint reads an object, or key=value:effect or key:effect, as kubectl writes taints.
func shapeTaint(raw json.RawMessage) (taint corev1.Taint, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		name, effect, ok := strings.Cut(text, ":")
		if !ok {
			return taint, fmt.Errorf("taint %q: want key=value:effect", text)
		}
		taint.Key, taint.Value, _ = strings.Cut(name, "=")
		taint.Effect = corev1.TaintEffect(effect)
	} else if err := readMembers(raw, members{"key": &taint.Key, "value": &taint.Value,
		"effect": &taint.Effect}); err != nil {
		return taint, err
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
		return taint, nil
	}
	return taint, fmt.Errorf("taint %s: effect %q: want NoSchedule, NoExecute or PreferNoSchedule", taint.Key,
		taint.Effect)
}

// maxPricesFile bounds a prices file in bytes: some ten thousand instance types.
const maxPricesFile = 1 << 20

// currencyCode is the form of a code of ISO 4217.
var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// ReadPrices reads the prices file, YAML or JSON: prices of one node per hour by pool and by instance type, those of
// spot nodes, and their currency. An error names field and value.
func ReadPrices(in io.Reader) (price.Book, error) {
	book := price.Book{}
	known := members{"currency": &book.Currency, "pools": &book.Pools, "instanceTypes": &book.InstanceTypes,
		"spot": &book.Spot}
	if err := readFile(in, maxPricesFile, "larger than 1 MiB: want prices by instance type", known); err != nil {
		return price.Book{}, err
	}
	if book.Currency != "" && !currencyCode.MatchString(book.Currency) {
		return price.Book{}, fmt.Errorf("currency %q: want a code of ISO 4217, such as %s", book.Currency,
			price.DefaultCurrency)
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
	return book, nil
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
