package sharing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// HAMi's annotations: what its agent registers, whether the agent still responds, and the UUIDs of cards from which an
// operator keeps new pods, in HAMi since release 2.10.
const (
	hamiRegister  = "hami.io/node-nvidia-register"
	hamiHandshake = "hami.io/node-handshake"
	hamiCordon    = "hami.io/device-cordon"
)

// hamiDevices reads both forms of the register: JSON since release 2.9; before, fields for each card that end in a
// colon, UUID,count,devmem,devcore,type,numa,health and in later releases index,mode.
func hamiDevices(key, register string) ([]hamiDevice, error) {
	if strings.HasPrefix(strings.TrimSpace(register), "[") {
		var devices []hamiDevice
		if err := json.Unmarshal([]byte(register), &devices); err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		for i := range devices {
			if err := devices[i].check(); err != nil {
				return nil, fmt.Errorf("reading %s: [%d]: %w", key, i, err)
			}
		}
		return devices, nil
	}
	var devices []hamiDevice
	for entry := range strings.SplitSeq(register, ":") {
		if entry == "" {
			continue
		}
		device, err := hamiLine(strings.Split(entry, ","), len(devices))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %q: %w", key, entry, err)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func hamiLine(fields []string, position int) (device hamiDevice, err error) {
	if len(fields) < 7 {
		return device, fmt.Errorf("%d fields, want at least 7", len(fields))
	}
	device.UUID, device.Index, device.Mode = fields[0], position, coreMode
	for i, into := range []*int64{&device.Count, &device.Memory, &device.Cores} {
		if *into, err = strconv.ParseInt(fields[1+i], 10, 64); err != nil {
			return device, fmt.Errorf("field %d: %w", 2+i, err)
		}
	}
	device.Type = fields[4]
	if device.Health, err = strconv.ParseBool(fields[6]); err != nil {
		return device, fmt.Errorf("field 7: %w", err)
	}
	if len(fields) > 7 {
		if device.Index, err = strconv.Atoi(fields[7]); err != nil {
			return device, fmt.Errorf("field 8: %w", err)
		}
	}
	if len(fields) > 8 {
		device.Mode = fields[8]
	}
	return device, device.check()
}

// registeredModel returns the model of the cards that HAMi or Volcano registers, empty if they are of several.
func registeredModel(node NodeObject) string {
	devices, err := hamiDevices(hamiRegister, node.Annotations[hamiRegister])
	if err == nil && len(devices) == 0 {
		devices, err = volcanoDevices(node.Annotations[volcanoRegister])
	}
	several := func(d hamiDevice) bool { return d.Type != devices[0].Type }
	if err != nil || len(devices) == 0 || slices.ContainsFunc(devices, several) {
		return ""
	}
	return devices[0].model()
}

// model returns the model of the card. HAMi before 2.9 and Volcano put NVIDIA- before a name that begins with NVIDIA.
func (d *hamiDevice) model() string {
	if rest, doubled := strings.CutPrefix(d.Type, "NVIDIA-"); doubled && strings.HasPrefix(rest, "NVIDIA") {
		return rest
	}
	return d.Type
}

// readHAMi recognizes HAMi by what its agent registers, or by the label that starts the agent together with more
// nvidia.com/gpu than the node has cards: HAMi announces nothing else, so allocatable does not show how full a card is.
func (r *reading) readHAMi() bool {
	register := r.node.Annotations[hamiRegister]
	if register == "" {
		cards, _, known := r.cardCount()
		if r.label("gpu") != "on" || !known || r.gpus.Units[gpuinfo.NvidiaGPU] <= cards ||
			r.label(labelReplicas, labelSharing) != "" {
			return false
		}
		return r.is(gpuinfo.VGPU, gpuinfo.Limit)
	}
	if key, silent := r.hamiSilent(); silent {
		r.problem(AgentSilent, fmt.Sprintf("%s=%s: HAMi's agent does not respond, and HAMi schedules nothing here", key,
			r.node.Annotations[key]))
	}
	devices, err := hamiDevices(hamiRegister, register)
	if err != nil || len(devices) == 0 {
		r.unregistered = true
		r.unreadable(hamiRegister, "HAMi's scheduler takes no cards from it", err)
		return r.is(gpuinfo.VGPU, gpuinfo.UnknownIsolation)
	}
	r.cards(int64(len(devices)))
	if r.contradicted(devices) {
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	r.hamiMemory(devices)
	r.hamiUnit(devices)
	r.readProfiles(devices)
	return r.is(gpuinfo.VGPU, vgpuIsolation(devices))
}

// contradicted reports a register whose shares are not what the node announces: HAMi announces each share that it
// registers, so another device plugin has the name, beside HAMi or after its removal, which leaves the annotation.
func (r *reading) contradicted(devices []hamiDevice) bool {
	var all, healthy int64
	for _, device := range devices {
		all += device.Count
		if device.Health {
			healthy += device.Count
		}
	}
	announced := r.devices[gpuinfo.NvidiaGPU]
	if announced == 0 || announced == all || announced == healthy {
		return false
	}
	r.problem(RegisterContradicted, fmt.Sprintf("%s is %d, and %s has %d shares of %d cards: another device plugin "+
		"announces the name", gpuinfo.NvidiaGPU, announced, hamiRegister, all, len(devices)))
	return true
}

// hamiUnit finds how much memory one nvidia.com/gpumem is, if the node announces it, as HAMi's mock device plugin does:
// that is the registered memory of all cards, divided by memoryFactor (docs/reference/facts.md#memory-units). The
// plugin announces 0 if the kubelet cannot take as many.
func (r *reading) hamiUnit(devices []hamiDevice) {
	announced := r.gpus.Units[gpuinfo.HAMiMemory]
	if announced == 0 {
		return
	}
	var sum int64
	for _, device := range devices {
		sum += device.Memory
	}
	unit, found := factorOf(sum, announced)
	if !found {
		r.problem(UnitUnknown, fmt.Sprintf("%s is %d, and %s has %d MiB: no whole factor explains it, so it is "+
			"unknown how much memory a unit is", gpuinfo.HAMiMemory, announced, hamiRegister, sum))
	}
	r.memory(gpuinfo.HAMiMemory, unit)
}

// cordon marks the cards from which an operator keeps new pods (HAMi, cordonedDevices in pkg/device/nvidia/device.go).
func (r *reading) cordon(devices []hamiDevice) {
	for uuid := range strings.SplitSeq(r.node.Annotations[hamiCordon], ",") {
		uuid = strings.TrimSpace(uuid)
		at := slices.IndexFunc(devices, func(d hamiDevice) bool { return d.UUID == uuid })
		switch {
		case uuid == "":
		case at < 0:
			r.problem(LabelUnreadable, fmt.Sprintf("%s names %s: want the UUID of a card in %s", hamiCordon, uuid,
				hamiRegister))
		default:
			devices[at].closed = "the node's annotation " + hamiCordon + " keeps new pods from it"
			r.problem(DeviceCordoned, fmt.Sprintf("%s keeps new pods from card %d, %s", hamiCordon, devices[at].Index,
				uuid))
		}
	}
}

// noHAMi reports whether a node is certainly none of HAMi: its scheduler skips nodes without the register (HAMi,
// NvidiaGPUDevices.GetNodeDevices). A file may be an excerpt, and leave all annotations out.
func (r *reading) noHAMi() bool {
	whole := !r.at.IsZero() || r.node.Annotations != nil
	return whole && r.node.Annotations[hamiRegister] == ""
}

// hamiMemory compares the registered memory with the most that such a card can have, and sets a card's memory if it is
// the same for all.
func (r *reading) hamiMemory(devices []hamiDevice) {
	memory, same := devices[0].Memory, true
	for i, device := range devices {
		same = same && device.Memory == memory
		if !device.Health {
			r.problem(DeviceUnhealthy, fmt.Sprintf("HAMi reports card %d of %s as unhealthy", i, hamiRegister))
		}
		if most := int64(gpuinfo.MemoryOf(device.Type)); most > 0 && device.Memory > most {
			r.problem(MemoryOvercommitted, fmt.Sprintf("HAMi registers %d MiB of %s, which has at most %d MiB",
				device.Memory, device.model(), most))
			same = false
		}
	}
	if same && devices[0].Cores <= 100 {
		r.gpus.CardMemoryMiB = &memory
	}
}

// hamiSilent returns the annotation that shows an agent that does not respond, if there is one. The scheduler writes
// Requesting_<time>, the agent replies with Reported, and Deleted_<time> means that it did not: the scheduler has then
// dropped the node's cards (HAMi, CheckHealth and RegisterFromNodeAnnotations). Without a clock, a request alone shows
// nothing.
func (r *reading) hamiSilent() (annotation string, silent bool) {
	for _, key := range []string{hamiHandshake, "NVIDIA"} {
		if strings.HasPrefix(r.node.Annotations[key], "Deleted") {
			return key, true
		}
	}
	return "", false
}

// hamiCards returns the cards in HAMi's register, less what its scheduler assigned to the node's pods.
func (r *reading) hamiCards() []Card {
	devices, err := hamiDevices(hamiRegister, r.node.Annotations[hamiRegister])
	if err != nil || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	r.cordon(devices)
	if _, silent := r.hamiSilent(); silent {
		for i := range devices {
			devices[i].closed = "HAMi's agent does not respond"
		}
	}
	return r.vgpuCards(hami, devices)
}

// percentOr100 returns the percentage of a card's memory that a pod asks for: without one, it is all of it.
func percentOr100(percent int64) int64 {
	if percent <= 0 {
		return 100
	}
	return percent
}
