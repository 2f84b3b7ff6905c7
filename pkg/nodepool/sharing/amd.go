package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Labels of AMD's node labeller and of its GPU operator's device config manager. The labeller writes the mode only if
// all cards have the same (ROCm/k8s-device-plugin, cmd/k8s-node-labeller/main.go); HAMi's copy of it writes
// amd.com/gpu.compute-memory-partition. The config manager's profiles have the names that their ConfigMap gives them.
var (
	labelsAMDProduct = []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"}
	labelsAMDMemory  = []string{"amd.com/gpu.vram", "beta.amd.com/gpu.vram"}
	labelsAMDMode    = []string{"amd.com/compute-memory-partition", "amd.com/gpu.compute-memory-partition"}
)

const (
	labelAMDProfile = "dcm.amd.com/gpu-config-profile"
	labelAMDState   = "dcm.amd.com/gpu-config-profile-state"
)

// amdCards are the cards that can be partitioned: their memory, and how many partitions the mode cpx makes of one: as
// many as its compute dies (AMD, data sheets of the Instinct series; ROCm, amdsmi, "GPU partitioning").
var amdCards = []struct {
	model           string
	gib, partsOfCPX int64
}{
	{"MI300X", 192, 8}, {"MI300A", 128, 6}, {"MI308X", 192, 4}, {"MI325X", 256, 8}, {"MI350X", 288, 8},
	{"MI355X", 288, 8},
}

// readAMD recognizes AMD's cards whose names, labels or memory say in which mode they are. A mode other than spx means
// partitions, however many units there are.
func (r *reading) readAMD() bool {
	modes, labelled := map[string]string{}, r.amdMode()
	for _, name := range r.announced() {
		if mode, named := gpuinfo.AMDMode(name); named {
			modes[name] = mode
		} else if name == gpuinfo.AMDGPU {
			modes[name] = labelled
		}
	}
	switch {
	case r.gpus.Units == nil && labelled != "":
		modes[gpuinfo.AMDGPU] = labelled
	case len(modes) == 0:
		return false
	case r.amdContradicts(modes, labelled):
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	if most, _ := r.amdCard(); r.gpus.Product != nil && modesSayWhole(modes) {
		if gib, _ := r.amdMemory(); r.belowProduct(gib<<10, most<<10) {
			return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
		}
	}
	whole := true
	for name, mode := range modes {
		if mode == "" && r.amdWholeMemory() {
			mode = "spx"
		}
		if mode == "" {
			return false // the number of units can still prove it
		}
		modes[name], whole = mode, whole && strings.HasPrefix(mode, "spx")
	}
	if cards, _, known := r.cardCount(); known {
		r.cards(cards)
	} else {
		r.cards(r.amdCount(modes))
	}
	if !whole {
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	for name := range modes {
		if r.moreThanCards(name) {
			return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
		}
		// The labeller rounds to whole GiB, so this is the least that rounds to its number.
		if gib, known := r.amdMemory(); known {
			memory := gib<<10 - 512
			r.memory(name, memory)
			r.gpus.CardMemoryMiB = &memory
		}
	}
	return r.is(gpuinfo.Whole, gpuinfo.Hardware)
}

// amdMode returns the mode of all cards that labels name, such as cpx_nps4, or "".
func (r *reading) amdMode() string {
	if mode := strings.ToLower(r.label(labelsAMDMode...)); mode != "" {
		return mode
	}
	profile := strings.ReplaceAll(strings.ToLower(r.label(labelAMDProfile)), "-", "_")
	if _, isMode := gpuinfo.AMDMode("amd.com/" + profile); isMode && r.label(labelAMDState) == "success" {
		return profile
	}
	return ""
}

// amdContradicts reports names that cannot be of the same cards: amd.com/gpu, which the plugin announces with the
// naming strategy single, beside those of the strategy mixed, or a name of a mode that labels do not say.
func (r *reading) amdContradicts(modes map[string]string, labelled string) bool {
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		mode, named := gpuinfo.AMDMode(name)
		switch {
		case !named && len(modes) > 1:
			others := slices.DeleteFunc(slices.Sorted(maps.Keys(modes)), func(o string) bool { return o == name })
			r.problem(NamesContradict, fmt.Sprintf("%s %d is announced beside %s: the device plugin announces the "+
				"one or the others", name, r.devices[name], strings.Join(others, ", ")))
		case named && labelled != "" && mode != labelled:
			r.problem(NamesContradict, fmt.Sprintf("%s %d is announced, and labels say %s", name, r.devices[name],
				labelled))
		default:
			continue
		}
		return true
	}
	return false
}

// amdCount returns how many cards the devices of these modes are on; -1 if that is unknown.
func (r *reading) amdCount(modes map[string]string) (cards int64) {
	_, dies := r.amdCard()
	parts := map[string]int64{"spx": 1, "dpx": 2, "tpx": 3, "qpx": 4, "cpx": dies}
	for name, mode := range modes {
		compute, _, _ := strings.Cut(mode, "_")
		n := parts[compute]
		if n == 0 || r.devices[name]%n != 0 {
			return -1
		}
		cards += r.devices[name] / n
	}
	return cards
}

// amdMemory returns the GiB of one device by the label of the labeller, such as 192G.
func (r *reading) amdMemory() (gib int64, known bool) {
	text, isGiB := strings.CutSuffix(r.label(labelsAMDMemory...), "G")
	gib, err := strconv.ParseInt(text, 10, 32)
	return gib, isGiB && err == nil && gib > 0
}

// amdWholeMemory reports whether one device has the memory of a whole card.
func (r *reading) amdWholeMemory() bool {
	gib, known := r.amdMemory()
	card, _ := r.amdCard()
	return known && gib == card
}

// amdCard returns the GiB of the node's cards and how many partitions the mode cpx makes of one; 0 if no row has them.
func (r *reading) amdCard() (gib, partsOfCPX int64) {
	for _, row := range amdCards {
		if strings.Contains(r.label(labelsAMDProduct...), row.model) {
			gib, partsOfCPX = row.gib, row.partsOfCPX
		}
	}
	return gib, partsOfCPX
}

// modesSayWhole reports whether no device is of a mode that makes partitions.
func modesSayWhole(modes map[string]string) bool {
	return !someOf(modes, func(_, mode string) bool { return mode != "" && !strings.HasPrefix(mode, "spx") })
}
