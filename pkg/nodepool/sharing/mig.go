package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readMIGChange recognizes a node on which mig-manager is working: the plugin is paused, and the node announces its
// former resources or none.
func (r *reading) readMIGChange() bool {
	switch state := r.label(labelState); state {
	case "", "success":
		return false
	case "pending", "rebooting", "failed":
		r.problem(MIGChanging, fmt.Sprintf("the change to %s is %s: the announced resources may be wrong",
			r.label(labelConfig), state))
	default:
		r.problem(LabelUnreadable, labelState+"="+state+": want pending, rebooting, success or failed")
		return false
	}
	r.gpus.Cards = nil // under the single strategy gpu.count counts cards before the change and instances after it
	return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
}

func (r *reading) readMIGInvalid() bool {
	if !strings.HasSuffix(r.label(LabelProduct), "-MIG-INVALID") {
		return false
	}
	r.problem(MIGInvalid,
		"MIG is on and the cards have no instances, or not all the same profile: the single strategy announces nothing")
	return r.is(gpuinfo.MIG, gpuinfo.UnknownIsolation)
}

// readMIGMixed recognizes instances under their own resource names. Labels suffice if the node's status is unknown.
func (r *reading) readMIGMixed() bool {
	instances := map[string]int64{}
	for _, name := range r.announced() {
		if resource, err := r.names.Resource(name); err == nil && resource.Profile != "" {
			instances[name] = r.devices[name]
		}
	}
	if r.gpus.Units == nil {
		instances = r.labelledInstances()
	}
	if len(instances) == 0 {
		return false
	}
	shares := 0
	for _, name := range slices.Sorted(maps.Keys(instances)) {
		if r.readInstances(name) {
			shares++
			delete(instances, name)
		}
	}
	r.cardsOfInstances(instances)
	weakest := r.cardsBesideInstances()
	if shares == 0 && (r.gpus.has(ProfileUnknown) || r.moreInstancesThanCards(instances)) {
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	switch {
	case shares > 0 && len(instances) == 0:
		return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
	case shares > 0:
		return r.is(gpuinfo.MIG, gpuinfo.NoIsolation)
	}
	return r.is(gpuinfo.MIG, weakest)
}

// unknownProfile reports a profile that the product does not have, under any driver's name of it. The tables can be
// older than the driver, so the announced units stay; nothing is known of what they are.
func (r *reading) unknownProfile(where, profile string) bool {
	name, err := gpuinfo.ParseProfile(profile)
	if err != nil || !r.productKnown || r.product.Has(name) {
		return false
	}
	r.problem(ProfileUnknown, fmt.Sprintf("%s: %s has no profile %s: want one of %s", where, r.product.Name, name,
		r.product.ProfileNames()))
	return true
}

// moreInstancesThanCards reports whether the announced instances need more cards than the node has: each of them is
// announced several times, and no label says so.
func (r *reading) moreInstancesThanCards(announced map[string]int64) bool {
	instances := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(announced)) {
		resource, err := r.names.Resource(name)
		if err == nil && r.moreThanLabelled(name, name+".count") {
			return true
		}
		if err == nil {
			instances[resource.Profile] = int(announced[name])
		}
	}
	cards, source, known := r.cardCount()
	needed, err := r.product.LeastCards(instances)
	if !known || !r.productKnown || err != nil || int64(needed) <= cards {
		return false
	}
	r.problem(SharingUnlabelled, fmt.Sprintf("MIG instances for at least %d cards are announced on %s: the instances "+
		"are shared, and no label says how", needed, countedCards(cards, source)))
	return true
}

// moreThanLabelled reports whether a resource has more units than feature discovery counts instances.
func (r *reading) moreThanLabelled(name, label string) bool {
	counted, labelled := r.number(label)
	if !labelled || counted == 0 || r.devices[name] <= counted {
		return false
	}
	r.problem(SharingUnlabelled, fmt.Sprintf("%s is %d, and %s=%d: the instances are shared, and no label says how",
		name, r.devices[name], label, counted))
	return true
}

// cardsBesideInstances reads the unpartitioned cards of the node and returns the weakest isolation on it, because those
// cards can be shared.
func (r *reading) cardsBesideInstances() gpuinfo.Isolation {
	memory, known := r.gfdMemory()
	if known {
		r.gpus.CardMemoryMiB = &memory
	}
	replicas, _ := r.number(labelReplicas)
	switch {
	case r.devices[gpuinfo.NvidiaGPU] == 0 && r.devices[gpuinfo.NvidiaGPUShared] == 0:
		return gpuinfo.Hardware
	case replicas > 1 && r.label(labelSharing) == "mps":
		return gpuinfo.Limit
	case replicas > 1:
		return gpuinfo.NoIsolation
	case r.devices[gpuinfo.NvidiaGPUShared] > 0, r.gpus.Units[gpuinfo.NvidiaGPU] > 0 && !r.labelledWhole():
		return gpuinfo.UnknownIsolation
	case known && r.gpus.Units[gpuinfo.NvidiaGPU] > 0:
		r.memory(gpuinfo.NvidiaGPU, memory)
	}
	return gpuinfo.Hardware
}

// labelledInstances returns the instances that feature discovery counts, by resource.
func (r *reading) labelledInstances() map[string]int64 {
	found := map[string]int64{}
	for key := range r.node.Labels {
		profile, isCount := strings.CutSuffix(key, ".count")
		if !isCount || !strings.HasPrefix(profile, labelMIG) {
			continue
		}
		if n, _ := r.number(key); n > 0 {
			found[profile] = n
		}
	}
	return found
}

// readInstances finds the memory of one instance and checks whether its profile is possible. It reports whether the
// units are shares of instances.
func (r *reading) readInstances(name string) (shares bool) {
	resource, err := r.names.Resource(name)
	if err != nil {
		r.problem(LabelUnreadable, err.Error())
		return false
	}
	profile, err := gpuinfo.ParseProfile(resource.Profile)
	if err != nil {
		return false // already parsed with the same grammar
	}
	r.unknownProfile(name, profile.String())
	if replicas, _ := r.number(labelMIG + profile.Label() + ".replicas"); resource.Shared || replicas > 1 {
		return true // shares of an instance have no memory of their own
	}
	label, exact := r.memoryLabel(profile)
	if label == "" {
		return false
	}
	if !exact {
		r.problem(ProfileMismatch,
			fmt.Sprintf("%s stands beside the label %s; the resource counts", name, label))
	}
	memory, _ := r.number(label)
	r.memory(name, memory)
	return false
}

// memoryLabel finds the label with an instance's memory: the label of the profile, or the one name that an older
// feature discovery uses for it.
func (r *reading) memoryLabel(profile gpuinfo.ProfileName) (key string, exact bool) {
	own := labelMIG + profile.Label() + ".memory"
	if _, set := r.node.Labels[own]; set {
		return own, true
	}
	for _, key := range slices.Sorted(maps.Keys(r.node.Labels)) {
		name, isMemory := strings.CutSuffix(strings.TrimPrefix(key, labelMIG), ".memory")
		if !isMemory || !strings.HasPrefix(key, labelMIG) {
			continue
		}
		if labelled, err := gpuinfo.ParseProfile(name); err == nil && labelled.Near(profile) {
			return key, false
		}
	}
	return "", false
}

// cardsOfInstances counts cards if all of them are known to be partitioned alike and no label counts them.
func (r *reading) cardsOfInstances(instances map[string]int64) {
	if r.gpus.Cards != nil || len(instances) != 1 || r.gpus.Units[gpuinfo.NvidiaGPU] > 0 {
		return
	}
	for name, n := range instances {
		if resource, err := r.names.Resource(name); err == nil {
			r.cardsCutInto(resource.Profile, n)
		}
	}
}

// cardsCutInto divides instances by how many fit on one card. That is the number of cards only if mig-manager
// partitioned all of them into this profile, or if the single strategy, which requires one profile on all cards, shows
// no other number: some instances of one profile can be on any number of cards.
func (r *reading) cardsCutInto(profile string, instances int64) {
	name, err := gpuinfo.ParseProfile(profile)
	single := r.label(labelStrategy) == strategySingle && r.label(labelConfig) == "" && r.gpus.Profile != nil
	if err != nil || !single && r.label(labelConfig) != "all-"+name.Label() {
		return
	}
	perCard, known := gpuinfo.PerCard(profile)
	if r.productKnown {
		p, has := r.product.Profile(profile)
		perCard, known = p.Max, has
	}
	if known && instances > 0 && instances%int64(perCard) == 0 {
		r.cards(instances / int64(perCard))
	}
}

// readMIGSingle recognizes instances under nvidia.com/gpu: feature discovery appends their profile to the product and
// gives their memory. The label mig.strategy is only a request and is also set on cards without MIG.
func (r *reading) readMIGSingle() bool {
	profile := r.singleProfile()
	if profile == "" {
		return false
	}
	r.gpus.Profile = &profile
	if r.label(LabelProduct) != "" && r.moreThanLabelled(gpuinfo.NvidiaGPU, labelCount) {
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	if r.unknownProfile(LabelProduct, profile) {
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	if memory, ok := r.gfdMemory(); ok {
		r.memory(gpuinfo.NvidiaGPU, memory)
	}
	instances := r.devices[gpuinfo.NvidiaGPU]
	if r.gpus.Units == nil {
		instances, _ = r.number(labelCount)
	}
	if r.label(LabelProduct) == "" {
		r.gpus.Cards = nil // gpu.count may count instances
	}
	if cards, _, known := r.cardCount(); known {
		r.cards(cards)
	} else {
		r.cardsCutInto(profile, instances)
	}
	return r.is(gpuinfo.MIG, gpuinfo.Hardware)
}

// singleProfile returns the profile behind nvidia.com/gpu. Without a product label, mig.config together with an
// instance's gpu.memory shows it.
func (r *reading) singleProfile() string {
	if _, profile, cut := strings.Cut(strings.TrimSuffix(r.label(LabelProduct), "-SHARED"), "-MIG-"); cut {
		name, err := gpuinfo.ParseProfile(profile)
		if err != nil {
			r.problem(LabelUnreadable, LabelProduct+": "+err.Error())
			return ""
		}
		return name.String()
	}
	configured, all := strings.CutPrefix(r.label(labelConfig), "all-")
	memory, known := r.gfdMemory()
	if r.label(LabelProduct) != "" || !all || !known {
		return ""
	}
	name, err := gpuinfo.ParseProfile(configured)
	if err != nil || memory > int64(name.GB)*1024 || memory < int64(name.GB)*1024*85/100 {
		return ""
	}
	return name.String()
}

// readDAS recognizes a node of OpenShift's Dynamic Accelerator Slicer, which creates MIG instances when pods are
// scheduled. The node announces how many of each profile its cards could have: the amounts are alternatives, and no sum
// of them means anything (openshift/instaslice-operator, pkg/daemonset/deviceplugins/device.go).
func (r *reading) readDAS() bool {
	if !r.gpus.slicedOnDemand() {
		return false
	}
	r.problem(AmountsAlternative, "the amounts under mig.das.com are how many instances of each profile the cards "+
		"could have, so fewer pods fit than their sum")
	return r.is(gpuinfo.MIG, gpuinfo.Hardware)
}

// slicedOnDemand reports whether the node announces instances that do not exist yet.
func (n *GPUs) slicedOnDemand() bool {
	for name, units := range n.Units {
		if _, isDAS := gpuinfo.DASName(name); isDAS && units > 0 {
			return true
		}
	}
	return false
}

// CutCards are physical cards of one product that are whole or partitioned with MIG, on one node or on identical nodes.
type CutCards struct {
	// Product is NVIDIA's name, as in gpuinfo.
	Product string `json:"product"`
	// Count is how many cards there are.
	Count int64 `json:"count"`
	// Cut lists the instances on all of them together. It is empty if they are whole.
	Cut []Cut `json:"cut,omitempty"`
	// Busy is how many of them pods use, nil if unknown.
	Busy *int64 `json:"busy"`
}

// Cut is a number of MIG instances of a profile.
type Cut struct {
	Profile string `json:"profile"`
	Count   int64  `json:"count"`
}

// CutCards returns the cards of a node. It returns false if their product, number or partitions are unknown, or if they
// are neither whole nor partitioned with MIG.
func (n *GPUs) CutCards() (CutCards, bool) {
	product, known := n.KnownProduct()
	if !known || n.slicedOnDemand() {
		return CutCards{}, false
	}
	cards := CutCards{Product: product.Name}
	switch n.Kind {
	case gpuinfo.Whole:
		cards.Count = n.Units[gpuinfo.NvidiaGPU]
		if n.Cards != nil {
			cards.Count = *n.Cards
		}
		if free, ok := n.Free[gpuinfo.NvidiaGPU]; ok && cards.Count == n.Units[gpuinfo.NvidiaGPU] {
			cards.Busy = new(cards.Count - free)
		}
		cards.leaveOut(n.unhealthy())
	case gpuinfo.MIG:
		if !n.cut(product, &cards) {
			return CutCards{}, false
		}
	}
	return cards, cards.Count > 0
}

// cut reads instances: under their own resource names, or under the name of whole cards if all are alike.
func (n *GPUs) cut(product gpuinfo.Product, cards *CutCards) bool {
	counts, healthy, held, known := map[string]int64{}, map[string]int64{}, int64(0), n.Free != nil
	for resource, units := range n.Units {
		name := ""
		if read, err := (gpuinfo.Names{}).Resource(resource); err == nil && read.Profile != "" {
			name = read.Profile
		} else if resource == gpuinfo.NvidiaGPU && n.Profile != nil {
			name = *n.Profile
		}
		if name == "" || units <= 0 {
			continue
		}
		profile, has := product.Profile(name)
		if !has {
			return false
		}
		counts[profile.Name] += units
		if well, known := n.HealthyUnits[resource]; known {
			healthy[profile.Name] += well
		} else {
			healthy[profile.Name] += units
		}
		held += units - n.Free[resource]
	}
	if len(counts) == 0 || n.Replicas != nil && *n.Replicas > 1 {
		return false
	}
	full := len(counts) == 1
	for _, profile := range product.Profiles {
		if units := counts[profile.Name]; units > 0 {
			cards.Cut = append(cards.Cut, Cut{profile.Name, healthy[profile.Name]})
			full = full && units%int64(profile.Max) == 0
			if n.Cards == nil && full {
				cards.Count = units / int64(profile.Max)
			}
		}
	}
	if n.Cards != nil {
		cards.Count = *n.Cards
	}
	if known {
		cards.Busy = n.busyCards(cards.Count, held)
	}
	cards.leaveOut(n.unhealthy())
	return true
}

// leaveOut removes unhealthy cards, which are not worth repartitioning. Afterwards Busy is unknown, because the removed
// cards may be in use.
func (p *CutCards) leaveOut(unhealthy int64) {
	if unhealthy > 0 {
		p.Count, p.Busy = max(p.Count-unhealthy, 0), nil
	}
}

// busyCards returns how many cards are in use by pods, nil if the units on all cards together do not show it.
func (n *GPUs) busyCards(count, held int64) *int64 {
	busy := int64(0)
	switch {
	case held == 0:
	case count == 1:
		busy = 1
	case int64(len(n.PerCard)) != count:
		return nil
	default:
		for _, card := range n.PerCard {
			card = n.WithUse(card)
			if card.Instances == nil ||
				slices.ContainsFunc(card.Instances, func(i CardInstance) bool { return i.Free == nil }) {
				return nil
			}
			if slices.ContainsFunc(card.Instances, func(i CardInstance) bool { return !*i.Free }) {
				busy++
			}
		}
	}
	return &busy
}

// Alike reports whether the cards of both are partitioned alike, on average.
func (p *CutCards) Alike(other CutCards) bool {
	return p.Product == other.Product && (p.Busy == nil) == (other.Busy == nil) &&
		slices.EqualFunc(p.Cut, other.Cut, func(a, b Cut) bool {
			return a.Profile == b.Profile && a.Count*other.Count == b.Count*p.Count
		})
}

func (p *CutCards) Add(more CutCards) {
	p.Count += more.Count
	for i := range p.Cut {
		p.Cut[i].Count += more.Cut[i].Count
	}
	if p.Busy != nil {
		p.Busy = new(*p.Busy + *more.Busy)
	}
}
