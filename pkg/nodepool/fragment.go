package nodepool

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// blocks is how many places for larger instances one more device takes away, on the card of all nodes that is best for it: of the instances
// that are in use now, as far as single cards tell. The layout of such a card can be changed around what is in use; what is taken stands in the
// way. It is nil where the device is no MIG instance, or no card tells.
func (w want) blocks(nodes []NodeGPUs) *int64 {
	var least *int64
	for _, node := range nodes {
		profile := w.resource.Profile
		if profile == "" && node.Profile != nil {
			profile = *node.Profile
		}
		product, known := productOf(node)
		if profile == "" || !known {
			continue
		}
		for _, card := range node.PerCard {
			if n, ok := node.withUse(card).blocks(product, profile); ok && (least == nil || n < *least) {
				least = &n
			}
		}
	}
	return least
}

// withUse fills in which instances of a card are in use where the node's units tell: of a profile of which all are free, or none is.
func (n NodeGPUs) withUse(c Card) Card {
	c.Instances = slices.Clone(c.Instances)
	for i := range c.Instances {
		instance := &c.Instances[i]
		name, err := gpuinfo.ParseProfile(instance.Profile)
		if instance.Free != nil || err != nil {
			continue
		}
		resource := gpuinfo.ResourceName(name, false)
		if n.Profile != nil {
			resource = gpuinfo.NvidiaGPU
		}
		if free, told := n.Free[resource]; told && (free == 0 || free == n.Units[resource]) {
			all := free > 0
			instance.Free = &all
		}
	}
	return c
}

// blocks is what one more instance of a profile takes away on one card; false where there is no room for it, or it is not known what is in use.
func (c Card) blocks(product gpuinfo.Product, profile string) (n int64, ok bool) {
	wanted, has := product.Profile(profile)
	if !has || !c.usable() || c.Instances == nil {
		return 0, false
	}
	var used []gpuinfo.Instance
	for _, instance := range c.Instances {
		switch {
		case instance.Free == nil || instance.Start == nil:
			return 0, false
		case !*instance.Free:
			used = append(used, gpuinfo.Instance{Profile: instance.Profile, Start: *instance.Start})
		}
	}
	after, err := product.Place(used, wanted.Name)
	if err != nil {
		return 0, false
	}
	return larger(product, used, wanted.Size) - larger(product, slices.Concat(used, after), wanted.Size), true
}

// larger counts the places that instances of more than this size have beside those in use.
func larger(product gpuinfo.Product, beside []gpuinfo.Instance, size int) (n int64) {
	additions, err := product.Additions(beside)
	if err != nil {
		return 0
	}
	for _, instance := range additions {
		if profile, has := product.Profile(instance.Profile); has && profile.Plain() && profile.Size > size {
			n++
		}
	}
	return n
}
