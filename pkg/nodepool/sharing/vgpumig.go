package sharing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The modes of cards: coreMode limits shares by software, and in migMode, HAMi or Volcano cuts a card into MIG
// instances on request.
const (
	coreMode = "hami-core"
	migMode  = "mig"
)

// hamiMIG is the annotation of a pod in which HAMi since release 2.10 records the pod's MIG instances.
const hamiMIG = "hami.io/vgpu-mig-allocations"

// OfferedProfile is a MIG profile into which a scheduler cuts cards when pods request memory of them
// (docs/reference/facts.md#mig-instances-of-hami).
type OfferedProfile struct {
	Name string `json:"name"`
	// MemoryMiB is the memory of an instance. Cores is its part of the card's compute slices in percent, rounded down.
	// Instances whose memory and cores fit on a card have a legal placement there.
	MemoryMiB int64 `json:"memoryMiB"`
	Cores     int64 `json:"cores"`
}

// nominal is the memory in the profile's name, which is no less than what an instance has.
func (p OfferedProfile) nominal() int64 {
	name, err := gpuinfo.ParseProfile(p.Name)
	if err != nil {
		return p.MemoryMiB
	}
	return max(p.MemoryMiB, int64(name.GB)*1024)
}

// registeredProfile is a MIG profile that HAMi since release 2.10 registers with a card, as NVML reports it.
type registeredProfile struct {
	Name   string `json:"name"`
	Memory int64  `json:"memoryMB"`
	Slices int64  `json:"sliceCount"`
}

func (p registeredProfile) check() error {
	_, err := gpuinfo.ParseProfile(p.Name)
	switch {
	case err != nil:
		return err
	case p.Memory <= 0 || p.Memory > mostAmount:
		return fmt.Errorf("memoryMB %d of MIG profile %s: want the memory of an instance", p.Memory, p.Name)
	case p.Slices <= 0 || p.Slices > mostCards:
		return fmt.Errorf("sliceCount %d of MIG profile %s: want its compute slices", p.Slices, p.Name)
	}
	return nil
}

// readProfiles finds the profiles into which cards are cut on request, and sets those of the node if they are the same
// for all cards.
func (r *reading) readProfiles(devices []hamiDevice) {
	for i := range devices {
		devices[i].offered = offeredProfiles(&devices[i])
	}
	differs := func(d hamiDevice) bool { return !slices.Equal(d.offered, devices[0].offered) }
	if len(devices) > 0 && !slices.ContainsFunc(devices, differs) {
		r.gpus.Profiles = devices[0].offered
	}
}

// offeredProfiles returns the profiles into which a card is cut on request: those in the register or, with HAMi before
// 2.10 and with Volcano, those of the product that HAMi's chart configures. It returns none if they are unknown.
func offeredProfiles(d *hamiDevice) (offered []OfferedProfile) {
	if d.Mode != migMode {
		return nil
	}
	product, known := gpuinfo.ProductOf(d.model())
	slicesOfCard, list := int64(7), d.MIGProfiles
	if known {
		slicesOfCard = int64(product.Slices)
	}
	if len(list) == 0 {
		list = chartProfiles(product)
	}
	for _, p := range list {
		offered = append(offered, OfferedProfile{p.Name, p.Memory, min(100*p.Slices/slicesOfCard, 100)})
	}
	slices.SortStableFunc(offered, func(a, b OfferedProfile) int {
		return cmp.Or(cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(a.Cores, b.Cores))
	})
	return offered
}

// Unproven reports whether it is unknown into which profiles the card is cut on request.
func (c *Card) Unproven() bool { return c.Mode == migMode && len(c.Profiles) == 0 }

// chartProfiles returns the profiles of a product in HAMi's chart (knownMigGeometries until release 2.9,
// migProfileAllowlist since): the plain ones, without the second one of the same size or of as many slices, as 1g with
// twice the memory, and 4g beside 3g.
func chartProfiles(product gpuinfo.Product) (list []registeredProfile) {
	slicesSeen, sizesSeen := map[int]bool{}, map[int]bool{}
	for _, p := range slices.Backward(product.Profiles) {
		if !p.Plain() || slicesSeen[p.Slices] || sizesSeen[p.Size] {
			continue
		}
		slicesSeen[p.Slices], sizesSeen[p.Size] = true, true
		memory := int64(p.Memory)
		if memory == 0 {
			memory = int64(product.GB) * 1024 * int64(p.Size) / int64(product.Units)
		}
		list = append(list, registeredProfile{p.Name, memory, int64(p.Slices)})
	}
	return list
}

// OfCard returns the node as if all its cards were like this one.
func (n GPUs) OfCard(c *Card) GPUs {
	n.Profiles, n.CardMemoryMiB = c.Profiles, c.MemoryMiB
	return n
}

// Holding returns the profile that a request for this much memory takes, if the node's cards are cut on request: the
// smallest that holds it, or the largest for a request for all of a card, which is 0.
func (n GPUs) Holding(mib int64) (profile OfferedProfile, holds bool) {
	for _, profile = range n.Profiles {
		if mib > 0 && profile.MemoryMiB >= mib {
			return profile, true
		}
	}
	return profile, mib == 0 && len(n.Profiles) > 0
}

// cut returns what a share takes of a card that is cut: an instance of the smallest profile that holds it. A record has
// what the pod requested, or what the scheduler's configuration says that the instance has, which may be the round
// number in its name.
func (v vgpuScheduler) cut(card string, s Share) Share {
	for _, p := range v.profiles[card] {
		if s.Percent == 0 && p.nominal() >= s.Memory {
			s.Memory, s.Cores = p.MemoryMiB, p.Cores
			return s
		}
	}
	return s
}

// physical removes the scaling of a card that is cut: its instances have the memory and cores that the hardware has.
func (d *hamiDevice) physical() {
	if len(d.offered) == 0 {
		return
	}
	d.Cores = 100
	if most := int64(gpuinfo.MemoryOf(d.model())); most > 0 {
		d.Memory = min(d.Memory, most)
	}
}

// mostUnits is more than the memory axis of any card has.
const mostUnits = 64

// reserved returns the instances of a card that pods have, as HAMi since release 2.10 records them; nil if the card is
// not cut by such a release.
func (r *reading) reserved(d *hamiDevice) []CardInstance {
	if len(d.MIGProfiles) == 0 || d.Mode != migMode {
		return nil
	}
	instances := []CardInstance{}
	for _, pod := range r.node.Pods {
		var recorded []struct {
			GPUUUID   string
			Profile   string
			Placement struct{ Start, Size int }
		}
		if json.Unmarshal([]byte(pod.Annotations[hamiMIG]), &recorded) != nil {
			continue // the record of shares still counts
		}
		for i := range recorded {
			it := &recorded[i]
			at := it.Placement
			if it.GPUUUID == d.UUID && min(at.Start, at.Size-1) >= 0 && at.Start+at.Size <= mostUnits {
				instances = append(instances, CardInstance{Profile: it.Profile, Start: &it.Placement.Start,
					Size: &it.Placement.Size, Free: new(bool)})
			}
		}
	}
	slices.SortStableFunc(instances, func(a, b CardInstance) int { return cmp.Compare(*a.Start, *b.Start) })
	return instances
}

// CutOnRequest reports whether HAMi or Volcano cuts all of the node's cards on request, and whether it cuts some.
func (n *GPUs) CutOnRequest() (all, some bool) {
	uncut := func(c Card) bool { return len(c.Profiles) == 0 }
	all = len(n.PerCard) > 0 && !slices.ContainsFunc(n.PerCard, uncut)
	return all, slices.ContainsFunc(n.PerCard, func(c Card) bool { return !uncut(c) })
}

// Uncounted returns why it is unknown how many pods with a request the cards of the node hold, if none is known to:
// they may be cut into profiles that nothing shows. It is empty if that is known.
func (n *GPUs) Uncounted(r Request, choice CardChoice) (why string) {
	all, some := n.CutOnRequest()
	unproven := func(c Card) bool { return c.Unproven() }
	if n.Kind != gpuinfo.VGPU || !some && !slices.ContainsFunc(n.PerCard, unproven) {
		return ""
	}
	scheduler := n.scheduler()
	unit, known := n.MemoryUnit(scheduler.Memory)
	switch {
	case !known:
		return ""
	case r.Cards > 1 && !r.Stacked && some && !all && scheduler.Name == hami.Name:
		return fmt.Sprintf("has cards that are cut into MIG instances beside others, so it is unknown how it gives a "+
			"container %d parts", r.Cards)
	}
	for i := range n.PerCard {
		card := &n.PerCard[i]
		mib := r.Memory * unit
		if r.Memory == 0 && r.Percent < 100 && card.MemoryMiB != nil {
			mib = *card.MemoryMiB * r.Percent / 100
		}
		like := n.OfCard(card)
		_, holds := like.Holding(mib)
		switch {
		case choice.Refuses(*card) != "" || !card.Usable():
		case card.Unproven():
			why = cmp.Or(why, "cuts cards of model "+card.Model+" into MIG instances, and no profile is known to hold "+
				"the request")
		case holds, len(card.Profiles) == 0 && (card.MemoryMiB == nil || mib <= *card.MemoryMiB):
			return ""
		}
	}
	return why
}
