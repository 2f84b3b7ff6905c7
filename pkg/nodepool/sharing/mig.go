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
		change := "the change of MIG"
		if config := r.label(labelConfig); config != "" {
			change = "the change to " + config
		}
		r.problem(MIGChanging, fmt.Sprintf("%s is %s: the announced resources may be wrong", change, state))
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
	return someOf(n.Units, func(name string, units int64) bool {
		_, isDAS := gpuinfo.DASName(name)
		return isDAS && units > 0
	})
}
