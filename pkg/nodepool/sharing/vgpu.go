package sharing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// hamiDevice is one card as HAMi's agent registers it. Count is how many shares it may be split into. Memory is in MiB
// and Cores in percent; both are scaled if HAMi is configured to overcommit.
type hamiDevice struct {
	UUID   string `json:"id"`
	Index  int    `json:"index"`
	Count  int64  `json:"count"`
	Memory int64  `json:"devmem"`
	Cores  int64  `json:"devcore"`
	Type   string `json:"type"`
	// Mode is coreMode, migMode or mps.
	Mode        string              `json:"mode"`
	Health      bool                `json:"health"`
	MIGProfiles []registeredProfile `json:"migProfiles"`
	// closed says why HAMi gives new pods no part of the card; empty if it does.
	closed string
	// offered are the Profiles of its Card.
	offered []OfferedProfile
}

func (d *hamiDevice) check() error {
	for _, amount := range []struct {
		what string
		n    int64
	}{{"shares", d.Count}, {"memory", d.Memory}, {"cores", d.Cores}, {"index", int64(d.Index)}} {
		if amount.n < 0 || amount.n > mostAmount {
			return fmt.Errorf("%s %d: want 0 or more", amount.what, amount.n)
		}
	}
	for _, profile := range d.MIGProfiles {
		if err := profile.check(); err != nil {
			return err
		}
	}
	return nil
}

const (
	hamiAllocated  = "hami.io/vgpu-devices-allocated"
	hamiToAllocate = "hami.io/vgpu-devices-to-allocate"
	volcanoIDs     = "volcano.sh/vgpu-ids-new"
)

// vgpuScheduler is a scheduler that assigns vGPUs: shares of cards, each with memory and a percentage of cores.
type vgpuScheduler struct {
	// Name is a word for messages and sources.
	Name string
	// Count, Memory and Cores are the resources that pods request: shares, MiB and percent of a card's cores.
	// Percentage requests memory in percent of a card's; empty if there is no such resource.
	Count, Memory, Cores, Percentage string
	// order is how it chooses among cards.
	order string
	// records are the annotations in which it records the cards of a pod, the first that has a record counts.
	records []string
	// recordsUnits: the memory in a record is in units of Memory, not in MiB.
	recordsUnits bool
	// unit is the MiB of one unit of Memory on a node, 0 for 1. profiles are those into which it cuts the node's cards,
	// by UUID.
	unit     int64
	profiles map[string][]OfferedProfile
}

// HAMi and Volcano record cards in the same form.
var (
	hami = vgpuScheduler{
		Name: "hami", Count: gpuinfo.NvidiaGPU, Memory: gpuinfo.HAMiMemory, Cores: gpuinfo.HAMiCores,
		Percentage: gpuinfo.HAMiMemoryPercentage, order: EmptiestCard, records: []string{hamiAllocated, hamiToAllocate},
	}
	volcano = vgpuScheduler{
		Name: "volcano", Count: gpuinfo.VolcanoNumber, Memory: gpuinfo.VolcanoMemory, Cores: gpuinfo.VolcanoCores,
		order: LastCard, records: []string{volcanoIDs}, recordsUnits: true,
	}
)

// scheduler returns the one that assigns vGPUs of the node.
func (n *GPUs) scheduler() vgpuScheduler {
	if n.Units[gpuinfo.VolcanoNumber] > 0 {
		return volcano
	}
	return hami
}

// OverPercent returns the request for more than all memory of a card; empty if there is none. HAMi and Volcano take the
// percentage only without an amount of memory, and never find such a card
// (docs/reference/facts.md#choice-of-a-card).
func OverPercent(of map[string]raydemand.Amount) string {
	for _, row := range slices.Backward(parts) {
		percent := unitsOf(of, row.percent)
		if row.kind == gpuinfo.VGPU && percent > 100 && unitsOf(of, row.memory) == 0 {
			return fmt.Sprintf("%s %d", row.percent, percent)
		}
	}
	return ""
}

// Held adds up what pods were assigned of the cards with these UUIDs: UUID,type,memory,cores for each card, with a
// colon after each and a semicolon between containers. A pod without a record holds what it requests, or all of a card
// if it requests no memory.
func (v vgpuScheduler) Held(pods []Pod, cards []string) *byCard[string] {
	held := &byCard[string]{cut: v.cut}
	for _, pod := range pods {
		if pod.Requests[v.Count] == 0 && pod.Requests[v.Memory] == 0 {
			continue
		}
		record, recorded := v.record(pod, cards)
		for card, share := range record {
			held.add(card, share)
		}
		if !recorded {
			held.addUnrecorded(pod, v.records[0], v.requested(pod))
		}
	}
	return held
}

// requested returns what a pod without a record holds of a card.
func (v vgpuScheduler) requested(pod Pod) Share {
	const allOfACard = 1 << 40
	asked := Share{Shares: 1, Memory: pod.Requests[v.Memory] * max(v.unit, 1), Cores: pod.Requests[v.Cores]}
	switch percent := pod.Requests[v.Percentage]; {
	case asked.Memory > 0: // cut says what it takes of each card
	case percent > 0 && v.Percentage != "":
		asked.Percent = percent
	default:
		asked.Memory = allOfACard
	}
	return asked
}

// record returns what a pod was assigned on each card. Anyone who can create a pod can write its annotations, so an
// implausible record is ignored: a negative amount would make room for others, and a card that the node does not have
// would place the pod nowhere.
func (v vgpuScheduler) record(pod Pod, cards []string) (record map[string]Share, recorded bool) {
	for _, key := range v.records {
		record = map[string]Share{}
		for entry := range strings.FieldsFuncSeq(pod.Annotations[key], betweenShares) {
			card, share, ok := vgpuShare(entry)
			if !ok || !slices.Contains(cards, card) {
				return nil, false
			}
			if v.recordsUnits {
				share.Memory *= max(v.unit, 1)
			}
			record[card] = record[card].plus(v.cut(card, share))
		}
		if len(record) > 0 {
			return record, true
		}
	}
	return nil, false
}

func betweenShares(c rune) bool { return c == ':' || c == ';' }

// vgpuShare reads UUID,type,memory,cores. If HAMi partitions the card, the instance follows the UUID in brackets
// (docs/reference/facts.md#mig-instances-of-hami).
func vgpuShare(entry string) (card string, s Share, ok bool) {
	fields := strings.Split(entry, ",")
	if len(fields) < 4 {
		return "", Share{}, false
	}
	memory, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "", Share{}, false
	}
	cores, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || min(memory, cores) < 0 || max(memory, cores) > mostAmount {
		return "", Share{}, false
	}
	card, _, _ = strings.Cut(fields[0], "[")
	return card, Share{Shares: 1, Memory: memory, Cores: cores}, true
}

// vgpuCards subtracts what pods hold. Memory of 0 is unknown. For a card with MIG instances of unknown profiles, free
// memory as one number means nothing, so it is left out.
func (r *reading) vgpuCards(scheduler vgpuScheduler, devices []hamiDevice) []Card {
	r.readProfiles(devices)
	held := r.vgpuHeld(scheduler, devices)
	cards := make([]Card, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		d.physical()
		card := Card{Index: &d.Index, Healthy: &d.Health, Source: scheduler.Name, Model: d.Type, Mode: d.Mode,
			Shares: d.Count, Profiles: d.offered}
		if d.Memory > 0 {
			card.MemoryMiB = &d.Memory
		}
		if d.UUID != "" {
			card.UUID = &d.UUID
		}
		if held != nil {
			g := held.Of(d.UUID)
			shares, cores := max(d.Count-g.Shares, 0), max(d.Cores-g.Cores, 0)
			card.FreeUnits, card.FreeCores = &shares, &cores
			memory := max(d.Memory-g.Memory-d.Memory*min(g.Percent, 100)/100, 0)
			if d.Memory > 0 && (d.Mode != migMode || len(d.offered) > 0) {
				card.FreeMiB = &memory
			}
			card.Instances = r.reserved(d)
		}
		switch {
		case !d.Health:
			card.Problem = "its agent reports it as unhealthy"
			card.empty()
		case d.closed != "":
			card.Problem = d.closed
			card.Healthy = new(bool)
			card.empty()
		}
		cards = append(cards, card)
	}
	return cards
}

// vgpuHeld returns what the node's pods hold of the devices, nil while the pods are unknown.
func (r *reading) vgpuHeld(scheduler vgpuScheduler, devices []hamiDevice) *byCard[string] {
	if r.node.Pods == nil {
		return nil
	}
	uuids := make([]string, len(devices))
	scheduler.unit, scheduler.profiles = r.gpus.MemoryMiB[scheduler.Memory], map[string][]OfferedProfile{}
	for i := range devices {
		uuids[i], scheduler.profiles[devices[i].UUID] = devices[i].UUID, devices[i].offered
	}
	held := scheduler.Held(r.node.Pods, uuids)
	r.unrecorded(held.Unrecorded(len(devices)))
	return held
}

// vgpuIsolation returns what separates the shares of the weakest of the cards.
func vgpuIsolation(devices []hamiDevice) gpuinfo.Isolation {
	if len(devices) == 0 || slices.ContainsFunc(devices, func(d hamiDevice) bool { return d.Mode != migMode }) {
		return gpuinfo.Limit
	}
	return gpuinfo.Hardware
}

// leastMiB is less than the memory of any card that is shared.
const leastMiB = 2048

// vgpuUnit returns the MiB of one unit of memory, of which each of these cards has so many. A plugin that is configured
// to count in larger units divides the memory of every card by one factor (docs/reference/facts.md#memory-units). It is
// 1 if the cards have no less than they should, and 0 if no factor, or not the same one, explains what they have.
func (r *reading) vgpuUnit(resource string, devices ...hamiDevice) int64 {
	unit := int64(0)
	for i := range devices {
		card, units := r.memoryOf(&devices[i], alike(devices)), devices[i].Memory
		factor, found := factorOf(card, units)
		switch {
		case found && (unit == 0 || unit == factor):
			unit = factor
		case found && card == 0:
		case found:
			r.problem(UnitUnknown, fmt.Sprintf("%s is %d for a card of %d MiB, a factor of %d, and others have a "+
				"factor of %d: it is unknown how much memory a unit is", resource, units, card, factor, unit))
			return 0
		default:
			why := fmt.Sprintf("for each card of %d MiB, and no whole factor explains it", card)
			if card == 0 {
				why = "for a card, fewer than any card has MiB, and nothing shows what this one has"
			}
			r.problem(UnitUnknown, fmt.Sprintf("%s is %d %s: it is unknown how much memory a unit is", resource,
				units, why))
			return 0
		}
	}
	return max(unit, 1)
}

// memoryOf returns the MiB of a card by the labels of its node, if its cards are alike, or by its model; 0 if neither
// shows it.
func (r *reading) memoryOf(d *hamiDevice, alike bool) int64 {
	if measured, ok := r.gfdMemory(); ok && alike {
		return measured
	}
	if r.gpus.CardMemoryMiB != nil && alike {
		return *r.gpus.CardMemoryMiB
	}
	return int64(gpuinfo.MemoryOf(cmp.Or(d.Type, value(r.gpus.Product))))
}

func alike(devices []hamiDevice) bool {
	return !slices.ContainsFunc(devices, func(d hamiDevice) bool {
		first := &devices[0]
		return d.Type != first.Type || d.Memory != first.Memory || d.Count != first.Count
	})
}

// factorOf returns the factor by which a card's memory was divided; false if none explains the units, or several do.
// The memory that labels and tables show can be up to a tenth more than what the driver reports, mostly less. If
// nothing shows it, units that are too few for a card in MiB prove a factor, and not which.
func factorOf(card, units int64) (factor int64, found bool) {
	if card <= 0 {
		return 1, units <= 0 || units >= leastMiB
	}
	if units <= 0 || 10*units >= 9*card {
		return 1, true
	}
	most := card / units
	for _, least := range []int64{card / (units + 1), (19*card/20 - 1) / units, (9*card/10 - 1) / units} {
		if most-least == 1 {
			return most, true
		}
	}
	return 0, false
}
