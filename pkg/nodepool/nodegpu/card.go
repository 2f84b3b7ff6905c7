package nodegpu

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Card is what is known of one physical card of a node: a request must fit one card, and a sum over cards says nothing
// about that. What is not known is nil.
type Card struct {
	// Index is the card's number on the node, UUID its identity. Both are nil where only the number of free cards is
	// known: then the free ones stand first.
	Index *int    `json:"index"`
	UUID  *string `json:"uuid"`
	// MemoryMiB is the memory that is handed out of the card. FreeMiB is what of it no pod was promised, UnusedMiB what
	// no process held when the agent last looked: only the former is room for a pod.
	MemoryMiB *int64 `json:"memoryMiB"`
	FreeMiB   *int64 `json:"freeMiB"`
	UnusedMiB *int64 `json:"unusedMiB"`
	// FreeUnits counts what is free in the node's units: memory units of gpu-mem, shares of HAMi and Volcano, 1 or 0
	// for a whole card.
	FreeUnits *int64 `json:"freeUnits"`
	// FreeCores is in percent of the card's multiprocessors, where they are handed out.
	FreeCores *int64 `json:"freeCores"`
	// Instances are the card's MIG instances, empty on a card that has none.
	Instances []CardInstance `json:"instances"`
	// MemoryUnits is the length of the card's memory axis, nil where the product has no MIG or is not known.
	MemoryUnits *int `json:"memoryUnits"`
	// Healthy is false when work must not go there; Problem says why.
	Healthy *bool  `json:"healthy"`
	Problem string `json:"problem,omitempty"`
	// Source is what tells: hami, volcano, gpu-mem, dra, agent, or pods.
	Source string `json:"source"`
}

// CardInstance is a MIG instance on a card. Start is the unit of the card's memory axis where it begins, Size how many
// units it takes.
type CardInstance struct {
	Profile string `json:"profile"`
	Start   *int   `json:"start"`
	Size    *int   `json:"size"`
	Free    *bool  `json:"free"`
}

// usable: a card that is not known to be ill.
func (c Card) usable() bool { return c.Healthy == nil || *c.Healthy }

// empty says that nothing more goes on a card.
func (c *Card) empty() {
	none := int64(0)
	c.FreeMiB, c.FreeUnits = &none, &none
	if c.FreeCores != nil {
		c.FreeCores = &none
	}
}

// PlacesLost is what one more instance of a profile takes away on one card; false where there is no room for it, or it
// is not known what is in use.
func (c Card) PlacesLost(product gpuinfo.Product, profile string) (n int64, ok bool) {
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
