package sharing

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readVolcano recognizes Volcano's vGPU plugin. Memory is a sum over the cards; a request must fit on one of them. If
// the register cannot be read, a later release may have written it: its scheduler can still read it, and what the cards
// have is unknown.
func (r *reading) readVolcano() bool {
	if r.devices[gpuinfo.VolcanoNumber] == 0 {
		return false
	}
	register, registered := r.node.Annotations[volcanoRegister]
	devices, err := volcanoDevices(register)
	unreadable := err != nil || registered && len(devices) == 0
	if cores := r.gpus.Units[gpuinfo.VolcanoCores]; r.gpus.Cards == nil && cores > 0 && cores%100 == 0 {
		r.cards(cores / 100)
	}
	if r.gpus.Cards == nil && len(devices) > 0 {
		r.cards(int64(len(devices)))
	}
	memory, announced := r.gpus.Units[gpuinfo.VolcanoMemory]
	if announced && memory == 0 {
		r.problem(MemoryMissing,
			gpuinfo.VolcanoMemory+" is 0, so no request for memory fits; large cards need the plugin's memory factor")
	}
	if unreadable {
		r.unreadable(volcanoRegister, "what the cards have is unknown, and how much memory a unit is", err)
		return r.is(gpuinfo.VGPU, gpuinfo.UnknownIsolation)
	}
	if memory > 0 && alike(devices) {
		r.perCard(gpuinfo.VolcanoMemory, memory)
		r.unitPerCard(gpuinfo.VolcanoMemory)
	} else if memory > 0 {
		r.memory(gpuinfo.VolcanoMemory, r.vgpuUnit(gpuinfo.VolcanoMemory, devices...))
	}
	r.readProfiles(devices)
	return r.is(gpuinfo.VGPU, vgpuIsolation(devices))
}

// unreadable reports a register of cards that is invalid or, without an error, names none, and what follows.
func (r *reading) unreadable(register, effect string, err error) {
	why := "reading " + register + ": it names no card"
	if err != nil {
		why = err.Error()
	}
	r.gpus.Problems = append(r.gpus.Problems, Problem{RegisterUnreadable, why + ": " + effect, register})
}

// unitPerCard finds the unit of a memory resource on cards that are alike, and with it the memory of a card.
func (r *reading) unitPerCard(resource string) {
	perCard := r.gpus.UnitsPerCard[resource]
	if perCard == 0 && r.memoryOf(&hamiDevice{}, true) > 0 {
		return // It is unknown of how many cards the sum is.
	}
	unit := r.vgpuUnit(resource, hamiDevice{Memory: perCard})
	r.memory(resource, unit)
	if memory := perCard * unit; r.gpus.CardMemoryMiB == nil && memory > 0 {
		r.gpus.CardMemoryMiB = &memory
	}
}

// readVolcanoMemory recognizes the sharing of Volcano's older device plugin, which isolates nothing. The plugin writes
// the number of cards beside the memory of all of them, for its scheduler; pods must not request that number
// (docs/reference/facts.md#gpu-share-of-volcano).
func (r *reading) readVolcanoMemory() bool {
	sum, announced := r.gpus.Units[gpuinfo.VolcanoShared]
	cards := r.gpus.Units[gpuinfo.VolcanoCards]
	switch {
	case !announced || max(sum, r.node.Capacity[gpuinfo.VolcanoShared], cards) == 0,
		cards == 0 && r.leftOver(gpuinfo.VolcanoShared):
		return false
	case sum == 0:
		r.problem(MemoryMissing, fmt.Sprintf("%s is 0 beside %s %d, so no request for memory fits: the device plugin "+
			"announces nothing", gpuinfo.VolcanoShared, gpuinfo.VolcanoCards, cards))
	}
	if r.gpus.Cards == nil && cards > 0 {
		r.cards(cards)
	}
	r.perCard(gpuinfo.VolcanoShared, sum)
	if sum > 0 {
		r.unitPerCard(gpuinfo.VolcanoShared)
	}
	return r.is(gpuinfo.GPUMemory, gpuinfo.NoIsolation)
}

// volcanoRegister is the annotation in which Volcano's device plugin registers the cards of a node.
const volcanoRegister = "volcano.sh/node-vgpu-register"

// volcanoCards returns the cards in Volcano's register, less what its scheduler assigned to the node's pods.
func (r *reading) volcanoCards() []Card {
	devices, err := volcanoDevices(r.node.Annotations[volcanoRegister])
	if err != nil || len(devices) == 0 || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	unit := r.gpus.MemoryMiB[gpuinfo.VolcanoMemory]
	if r.gpus.Units[gpuinfo.VolcanoMemory] == 0 {
		unit = r.vgpuUnit(gpuinfo.VolcanoMemory, devices...)
	}
	for i := range devices {
		devices[i].Memory *= unit
	}
	return r.vgpuCards(volcano, devices)
}

// volcanoDevices reads Volcano's register: UUID,count,memory,type,health,mode for each card, ending in a colon, without
// the mode until Volcano 1.11 (volcano, decodeNodeDevices in pkg/scheduler/api/devices/nvidia/vgpu/utils.go). Memory is
// in units of volcano.sh/vgpu-memory.
func volcanoDevices(register string) (devices []hamiDevice, err error) {
	if strings.HasPrefix(register, "[") || strings.HasPrefix(register, "{") {
		return nil, fmt.Errorf("reading %s: it is JSON: want UUID,count,memory,type,health,mode: for each card",
			volcanoRegister)
	}
	for entry := range strings.SplitSeq(register, ":") {
		if !strings.Contains(entry, ",") {
			continue
		}
		device, err := volcanoDevice(entry, len(devices))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %q: %w", volcanoRegister, entry, err)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func volcanoDevice(entry string, index int) (device hamiDevice, err error) {
	fields := strings.Split(entry, ",")
	if len(fields) < 5 {
		return device, fmt.Errorf("%d fields, want 6, or 5 without a mode", len(fields))
	}
	device = hamiDevice{UUID: fields[0], Index: index, Cores: 100, Type: fields[3], Mode: coreMode}
	if len(fields) > 5 {
		device.Mode = fields[5]
	}
	for i, into := range []*int64{&device.Count, &device.Memory} {
		if *into, err = strconv.ParseInt(fields[1+i], 10, 64); err != nil {
			return device, fmt.Errorf("field %d: %w", 2+i, err)
		}
	}
	if device.Health, err = strconv.ParseBool(fields[4]); err != nil {
		return device, fmt.Errorf("field 5: %w", err)
	}
	return device, device.check()
}
