package sharing

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readVolcano recognizes Volcano's vGPU plugin. Memory is a sum over the cards; a request must fit on one of them.
func (r *reading) readVolcano() bool {
	most := func(name string) int64 { return max(r.gpus.Units[name], r.node.Capacity[name]) }
	if most(gpuinfo.VolcanoNumber) == 0 {
		return false
	}
	if cores := r.gpus.Units[gpuinfo.VolcanoCores]; r.gpus.Cards == nil && cores > 0 && cores%100 == 0 {
		r.cards(cores / 100)
	}
	memory, announced := r.gpus.Units[gpuinfo.VolcanoMemory]
	if announced && memory == 0 {
		r.problem(MemoryMissing,
			gpuinfo.VolcanoMemory+" is 0, so no request for memory fits; large cards need the plugin's memory factor")
	}
	if memory > 0 {
		r.memory(gpuinfo.VolcanoMemory, 1)
		r.perCard(gpuinfo.VolcanoMemory, memory)
	}
	return r.is(gpuinfo.VGPU, gpuinfo.Limit)
}

// readVolcanoMemory recognizes the sharing of Volcano's older device plugin, which isolates nothing. The plugin writes
// the number of cards beside the memory of all of them, for its scheduler; pods must not request that number
// (docs/reference/facts.md#gpu-share-of-volcano).
func (r *reading) readVolcanoMemory() bool {
	sum, announced := r.gpus.Units[gpuinfo.VolcanoShared]
	cards := r.gpus.Units[gpuinfo.VolcanoCards]
	switch {
	case !announced || max(sum, r.node.Capacity[gpuinfo.VolcanoShared], cards) == 0:
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
		r.memory(gpuinfo.VolcanoShared, 1)
	}
	return r.is(gpuinfo.GPUMemory, gpuinfo.NoIsolation)
}

// volcanoRegister is the annotation in which Volcano's device plugin registers the cards of a node.
const volcanoRegister = "volcano.sh/node-vgpu-register"

// volcanoCards returns the cards in Volcano's register: UUID,count,memory,type,health,mode for each, ending in a colon
// (volcano, pkg/scheduler/api/devices/nvidia/vgpu).
func (r *reading) volcanoCards() []Card {
	register := r.node.Annotations[volcanoRegister]
	if register == "" || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	var devices []hamiDevice
	for entry := range strings.SplitSeq(register, ":") {
		if !strings.Contains(entry, ",") {
			continue
		}
		device, err := volcanoDevice(entry, len(devices))
		if err != nil {
			r.problem(LabelUnreadable, fmt.Sprintf("reading %s: %q: %v", volcanoRegister, entry, err))
			return nil
		}
		devices = append(devices, device)
	}
	return r.vgpuCards(Volcano, devices)
}

func volcanoDevice(entry string, index int) (device hamiDevice, err error) {
	fields := strings.Split(entry, ",")
	if len(fields) < 6 {
		return device, fmt.Errorf("%d fields, want 6", len(fields))
	}
	device = hamiDevice{UUID: fields[0], Index: index, Cores: 100, Type: fields[3], Mode: fields[5]}
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
