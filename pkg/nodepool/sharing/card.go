package sharing

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Card is what is known about one physical card of a node. A request must fit on one card, which a sum over cards
// cannot show. Unknown values are nil.
type Card struct {
	// Index is the card's number on the node, UUID its identity. Both are nil if only the number of free cards is
	// known; the free ones then come first.
	Index *int    `json:"index"`
	UUID  *string `json:"uuid"`
	// MemoryMiB is the memory of the card that pods can get. FreeMiB is the part that no pod has requested, and
	// UnusedMiB the part that no process held when the agent last looked. Only FreeMiB is room for a pod.
	MemoryMiB *int64 `json:"memoryMiB"`
	FreeMiB   *int64 `json:"freeMiB"`
	UnusedMiB *int64 `json:"unusedMiB"`
	// FreeUnits is what is free in the node's units: memory units of gpu-mem, shares of HAMi and Volcano, percent of a
	// card's memory of Koordinator, 1 or 0 for a whole card.
	FreeUnits *int64 `json:"freeUnits"`
	// Shares is into how many shares HAMi or Volcano may split the card; 0 if neither does.
	Shares int64 `json:"shares,omitempty"`
	// Profiles are the MIG profiles into which HAMi or Volcano cuts the card on request, the smallest first; nil if it
	// cuts none or if they are unknown.
	Profiles []OfferedProfile `json:"profiles,omitempty"`
	// FreeCores is in percent of the card's multiprocessors, if they can be requested.
	FreeCores *int64 `json:"freeCores"`
	// Instances are the card's MIG instances, empty if it has none.
	Instances []CardInstance `json:"instances"`
	// MemoryUnits is the length of the card's memory axis, nil if the product has no MIG or is unknown.
	MemoryUnits *int `json:"memoryUnits"`
	// Healthy is false if no work should go to the card; Problem gives the reason.
	Healthy *bool  `json:"healthy"`
	Problem string `json:"problem,omitempty"`
	// Model is the card's model and Mode how it is shared, as HAMi or Volcano registers them; empty if they are
	// unknown.
	Model string `json:"model,omitempty"`
	Mode  string `json:"mode,omitempty"`
	// Source is where the values come from: hami, volcano, koordinator, gpu-mem, dra, agent, or
	// pods.
	Source string `json:"source"`
}

// CardInstance is a MIG instance on a card. Start is the first unit of the card's memory axis that it occupies, and
// Size the number of units.
type CardInstance struct {
	Profile string `json:"profile"`
	Start   *int   `json:"start"`
	Size    *int   `json:"size"`
	Free    *bool  `json:"free"`
}

// Usable reports whether the card is not known to be unhealthy.
func (c Card) Usable() bool { return c.Healthy == nil || *c.Healthy }

func (c *Card) empty() {
	none := int64(0)
	c.FreeMiB, c.FreeUnits = &none, &none
	if c.FreeCores != nil {
		c.FreeCores = &none
	}
}

// measureInstances sets the size of each MIG instance and of its card on the memory axis, if the product is known. A
// picture of the card needs both.
func (r *reading) measureInstances() {
	product, known := r.gpus.KnownProduct()
	if !known {
		return
	}
	for i := range r.gpus.PerCard {
		card := &r.gpus.PerCard[i]
		if card.Instances == nil {
			continue
		}
		card.MemoryUnits = &product.Units
		for j := range card.Instances {
			if profile, ok := product.Profile(card.Instances[j].Profile); ok {
				card.Instances[j].Size = &profile.Size
			}
		}
	}
}

// readFree finds what is free: the node's units less what its pods request, and what is known about each card.
func (r *reading) readFree() {
	if r.node.Pods != nil && r.gpus.Units != nil {
		r.freeUnits()
	}
	for _, source := range cardSources {
		if cards := source(r); len(cards) > 0 {
			r.gpus.PerCard = cards
			break
		}
	}
	r.joinAgent()
	r.measureInstances()
	slices.SortStableFunc(r.gpus.PerCard, func(a, b Card) int {
		if a.Index == nil || b.Index == nil {
			return 0
		}
		return cmp.Compare(*a.Index, *b.Index)
	})
}

// cardSources describe single cards, the most exact first: a scheduler that shares cards records its assignments.
var cardSources = []func(*reading) []Card{
	(*reading).hamiCards, (*reading).volcanoCards, (*reading).koordinatorCards, (*reading).gpuMemoryCards,
	(*reading).draCards, (*reading).wholeCards,
}

func (r *reading) freeUnits() {
	r.gpus.Free = map[string]int64{}
	for name, units := range r.gpus.Units {
		if resource, err := r.names.Resource(name); err == nil && resource.Role == gpuinfo.Information {
			continue
		}
		for _, pod := range r.node.Pods {
			units -= pod.Requests[name]
		}
		r.gpus.Free[name] = max(units, 0)
	}
}

// Pod is what a pod on a node shows about its use of the node's GPUs.
type Pod struct {
	Namespace, Name, Node string
	Annotations           map[string]string
	// Requests are the extended resources that all its containers request.
	Requests map[string]int64
}

// Share is what pods hold of one card: how many shares, memory in MiB or in units, memory in percent of the card's, and
// percent of cores.
type Share struct{ Shares, Memory, Percent, Cores int64 }

func (s Share) plus(other Share) Share {
	return Share{
		s.Shares + other.Shares, s.Memory + other.Memory, s.Percent + other.Percent, s.Cores + other.Cores,
	}
}

// byCard has the shares that pods hold, by card. A pod without a record of its card is charged to every card: it is on
// one of them, and no card then appears to have more room than it has. The card that its scheduler would choose proves
// nothing: what was on the cards when it chose is unknown, and a pod without a record may have passed by that
// scheduler.
type byCard[K comparable] struct {
	shares     map[K]Share
	everywhere []Share
	// cut returns what a share takes of a card; nil if every card gives what is requested.
	cut func(card K, s Share) Share
	// unrecorded is how many pods are charged to every card. pod is the first of them by name, and annotation the one
	// that it lacks.
	unrecorded      int
	pod, annotation string
}

// Of returns what pods hold of a card.
func (b *byCard[K]) Of(card K) Share {
	sum := b.shares[card]
	for _, share := range b.everywhere {
		if b.cut != nil {
			share = b.cut(card, share)
		}
		sum = sum.plus(share)
	}
	return sum
}

func (b *byCard[K]) add(card K, s Share) {
	if b.shares == nil {
		b.shares = map[K]Share{}
	}
	b.shares[card] = b.shares[card].plus(s)
}

// addUnrecorded charges a pod to every card, because it lacks an annotation.
func (b *byCard[K]) addUnrecorded(pod Pod, annotation string, s Share) {
	if s == (Share{}) {
		return
	}
	b.everywhere = append(b.everywhere, s)
	if name := pod.Namespace + "/" + pod.Name; b.unrecorded == 0 || name < b.pod {
		b.pod, b.annotation = name, annotation
	}
	b.unrecorded++
}

// Unrecorded names a pod that is charged to every one of the node's cards, in a sentence. It is empty if there is none.
// On a node with one card, that is where the pod is.
func (b *byCard[K]) Unrecorded(cards int) string {
	if b.unrecorded == 0 || cards < 2 {
		return ""
	}
	more := ""
	if b.unrecorded > 1 {
		more = fmt.Sprintf(", and %d more pods like it", b.unrecorded-1)
	}
	return fmt.Sprintf("pod %s has no annotation %s that names a card of this node, so its part counts on each of the "+
		"%d cards%s", b.pod, b.annotation, cards, more)
}

// PodAnnotations returns the annotations in which schedulers record what a pod holds.
func PodAnnotations() []string {
	return []string{hamiAllocated, hamiToAllocate, hamiMIG, volcanoIDs, ackAllocation, ackCores, gpushareCard,
		gpushareAmount, koordinatorAllocated}
}

// unrecorded reports a pod that is charged to every card; message is empty if there is none.
func (r *reading) unrecorded(message string) {
	if message != "" {
		r.problem(CardUnrecorded, message)
	}
}
