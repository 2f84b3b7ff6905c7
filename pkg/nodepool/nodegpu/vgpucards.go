package nodegpu

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/allocation"
)

// volcanoRegister is the annotation in which Volcano's device plugin registers the cards of a node.
const volcanoRegister = "volcano.sh/node-vgpu-register"

// hamiCards returns the cards in HAMi's register, less what its scheduler assigned to the node's pods.
func (r *reading) hamiCards() []Card {
	devices, err := hamiDevices(r.node.Annotations[hamiRegister])
	if err != nil || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	return r.vgpuCards(allocation.HAMi, devices)
}

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
	return r.vgpuCards(allocation.Volcano, devices)
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

// vgpuCards subtracts what pods hold. For a card with MIG instances, free memory as one number means nothing, so it is
// left out.
func (r *reading) vgpuCards(scheduler allocation.VGPUScheduler, devices []hamiDevice) []Card {
	held := r.vgpuHeld(scheduler, devices)
	cards := make([]Card, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		card := Card{Index: &d.Index, MemoryMiB: &d.Memory, Healthy: &d.Health, Source: scheduler.Name}
		if d.UUID != "" {
			card.UUID = &d.UUID
		}
		if held != nil {
			g := held.Of(d.UUID)
			shares, cores := max(d.Count-g.Shares, 0), max(d.Cores-g.Cores, 0)
			card.FreeUnits, card.FreeCores = &shares, &cores
			if memory := max(d.Memory-g.Memory-d.Memory*min(g.Percent, 100)/100, 0); d.Mode != "mig" {
				card.FreeMiB = &memory
			}
		}
		if !d.Health {
			card.Problem = "its agent reports it as unhealthy"
			card.empty()
		}
		cards = append(cards, card)
	}
	return cards
}

// vgpuHeld returns what the node's pods hold of the devices, nil while the pods are unknown.
func (r *reading) vgpuHeld(scheduler allocation.VGPUScheduler, devices []hamiDevice) *allocation.ByCard[string] {
	if r.node.Pods == nil {
		return nil
	}
	uuids := make([]string, len(devices))
	for i := range devices {
		uuids[i] = devices[i].UUID
	}
	held := scheduler.Held(r.node.Pods, uuids)
	r.unrecorded(held.Unrecorded(len(devices)))
	return held
}

// unrecorded reports a pod that is charged to every card; message is empty if there is none.
func (r *reading) unrecorded(message string) {
	if message != "" {
		r.problem(CardUnrecorded, message)
	}
}
