package decode

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// maxPoolsFile bounds a pools file in bytes: some thousand pools.
const maxPoolsFile = 4 << 20

// currencyCode is the form of a code of ISO 4217.
var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

// ReadPools reads the pools file, YAML or JSON: pools with name, minNodes, maxNodes, price, spot, and the shape of a
// new node (allocatable, labels, taints); instanceTypes and spot, prices of a node by instance type; their currency;
// and complete, which says that no other pool can get a node.
// An error names field, value and what would be right.
func ReadPools(in io.Reader) (landing.Config, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxPoolsFile+1))
	if err == nil && len(text) > maxPoolsFile {
		err = errors.New("larger than 4 MiB: want a list of pools")
	}
	if err == nil {
		text, err = OneDocument(text)
	}
	if err != nil {
		return landing.Config{}, err
	}
	root, doc := fieldpath.Read(text)
	file := root.Members()
	currency := file.Pick("currency")
	config := landing.Config{
		Complete: file.Pick("complete").Flag(), InstancePrices: pricesOf(file.Pick("instanceTypes")),
		SpotPrices: pricesOf(file.Pick("spot")), Currency: currency.Text(),
	}
	if config.Currency != "" && !currencyCode.MatchString(config.Currency) {
		currency.Fail("a code of ISO 4217, such as " + price.DefaultCurrency)
	}
	for _, each := range file.Pick("pools").Objects() {
		pool := each.Members()
		spec := readPool(pool)
		if slices.ContainsFunc(config.Pools, func(p landing.Spec) bool { return p.Name == spec.Name }) {
			pool.Member("name").Fail("a name that no other pool has")
		}
		config.Pools = append(config.Pools, spec)
	}
	file.Done()
	if fault := doc.Strict(); fault != nil {
		return landing.Config{}, fault
	}
	return config, nil
}

func readPool(pool *fieldpath.Members) landing.Spec {
	spec := landing.Spec{
		Name: pool.Pick("name").NonEmpty("the name of a pool"), MinNodes: nodeCount(pool.Pick("minNodes")),
		MaxNodes: nodeCount(pool.Pick("maxNodes")), Price: priceOf(pool.Pick("price")),
	}
	if spot := pool.Pick("spot"); !spot.Absent() {
		spec.Spot = new(spot.Flag())
	}
	if spec.MinNodes != nil && spec.MaxNodes != nil && *spec.MinNodes > *spec.MaxNodes {
		pool.Member("minNodes").Fail(fmt.Sprintf("at most maxNodes, which is %d", *spec.MaxNodes))
	}
	if shape := pool.Pick("shape"); !shape.Absent() {
		if node := shapeNode(shape.Members()); len(node.Status.Allocatable) > 0 {
			node.Name = spec.Name
			object := ForGPUs(node)
			spec.Shape, spec.Allocatable = &object, ForPodFit(sharing.Reader{}, node).Allocatable
		}
	}
	pool.Done()
	return spec
}

func nodeCount(in fieldpath.JSON) *int64 {
	if in.Absent() {
		return nil
	}
	return new(in.Count(0, math.MaxInt32, 0))
}

// priceOf returns a price; nil if there is none.
func priceOf(in fieldpath.JSON) *float64 {
	var amount float64
	want := fmt.Sprintf("a number from 0 to %.0f without quotes", landing.MaxPrice)
	if !in.Into(&amount, want) {
		return nil
	}
	if amount < 0 || amount > landing.MaxPrice {
		in.Fail(want)
	}
	return &amount
}

// pricesOf returns prices by name; nil if there is no object of them.
func pricesOf(in fieldpath.JSON) map[string]float64 {
	members, given := in.Named("an object of prices")
	if !given {
		return nil
	}
	prices := map[string]float64{}
	for _, each := range members {
		if amount := priceOf(each); amount != nil {
			prices[each.Name()] = *amount
		}
	}
	return prices
}

// shapeNode reads a new node: quantities, as text or number, labels, and taints, as key=value:effect or objects with
// these fields.
func shapeNode(shape *fieldpath.Members) *corev1.Node {
	node := &corev1.Node{}
	node.Status.Allocatable = corev1.ResourceList{}
	amounts, _ := shape.Pick("allocatable").Named("an object of quantities")
	for _, each := range amounts {
		node.Status.Allocatable[corev1.ResourceName(each.Name())] = shapeAmount(each)
	}
	shape.Pick("labels").Into(&node.Labels, "an object of strings")
	for _, each := range shape.Pick("taints").List() {
		node.Spec.Taints = append(node.Spec.Taints, shapeTaint(each))
	}
	shape.Done()
	return node
}

func shapeAmount(in fieldpath.JSON) (amount resource.Quantity) {
	amount, err := resource.ParseQuantity(strings.Trim(string(in.Raw()), `"`))
	switch {
	case err != nil || amount.Sign() < 0:
		in.Fail("a Kubernetes quantity of 0 or more")
	case extended(in.Name()) && amount.MilliValue()%1000 != 0:
		in.Fail("a whole number")
	}
	return amount
}

// shapeTaint reads an object, or key=value:effect or key:effect, as kubectl writes taints.
func shapeTaint(in fieldpath.JSON) (taint corev1.Taint) {
	at, want := in, "key=value:effect with the effect NoSchedule, NoExecute or PreferNoSchedule"
	if in.IsObject() {
		fields := in.Members()
		taint.Key, taint.Value = fields.Pick("key").Text(), fields.Pick("value").Text()
		taint.Effect = corev1.TaintEffect(fields.Pick("effect").Text())
		fields.Done()
		at, want = fields.Member("effect"), "NoSchedule, NoExecute or PreferNoSchedule"
	} else {
		name, effect, _ := strings.Cut(in.Text(), ":")
		taint.Key, taint.Value, _ = strings.Cut(name, "=")
		taint.Effect = corev1.TaintEffect(effect)
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
	default:
		at.Fail(want)
	}
	return taint
}
