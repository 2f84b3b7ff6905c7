package nodegpu

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// HAMi's annotations: what its agent registers, and whether the agent still responds.
const (
	hamiRegister  = "hami.io/node-nvidia-register"
	hamiHandshake = "hami.io/node-handshake"
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
	Mode   string `json:"mode"`
	Health bool   `json:"health"`
}

// hamiDevices reads both forms of the register: JSON since release 2.9; before, fields for each card that end in a
// colon, UUID,count,devmem,devcore,type,numa,health and in later releases index,mode.
func hamiDevices(register string) ([]hamiDevice, error) {
	if strings.HasPrefix(strings.TrimSpace(register), "[") {
		var devices []hamiDevice
		if err := json.Unmarshal([]byte(register), &devices); err != nil {
			return nil, fmt.Errorf("reading %s: %w", hamiRegister, err)
		}
		for i := range devices {
			if err := devices[i].check(); err != nil {
				return nil, fmt.Errorf("reading %s: [%d]: %w", hamiRegister, i, err)
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
			return nil, fmt.Errorf("reading %s: %q: %w", hamiRegister, entry, err)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func hamiLine(fields []string, position int) (device hamiDevice, err error) {
	if len(fields) < 7 {
		return device, fmt.Errorf("%d fields, want at least 7", len(fields))
	}
	device.UUID, device.Index = fields[0], position
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

func (d *hamiDevice) check() error {
	for _, amount := range []struct {
		what string
		n    int64
	}{{"shares", d.Count}, {"memory", d.Memory}, {"cores", d.Cores}, {"index", int64(d.Index)}} {
		if amount.n < 0 || amount.n > mostAmount {
			return fmt.Errorf("%s %d: want 0 or more", amount.what, amount.n)
		}
	}
	return nil
}

// hamiModel returns the model of the first card. Releases before 2.9 put NVIDIA- before a name that begins with NVIDIA.
func hamiModel(node NodeObject) string {
	devices, err := hamiDevices(node.Annotations[hamiRegister])
	if err != nil || len(devices) == 0 {
		return ""
	}
	model := devices[0].Type
	if rest, doubled := strings.CutPrefix(model, "NVIDIA-"); doubled && strings.HasPrefix(rest, "NVIDIA") {
		return rest
	}
	return model
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
	r.hamiSilent()
	devices, err := hamiDevices(register)
	if err != nil || len(devices) == 0 {
		why := "it names no card"
		if err != nil {
			why = err.Error()
		}
		r.unregistered = true
		r.problem(RegisterUnreadable, fmt.Sprintf("HAMi's scheduler takes no cards from %s: %s", hamiRegister, why))
		return r.is(gpuinfo.VGPU, gpuinfo.UnknownIsolation)
	}
	r.cards(int64(len(devices)))
	r.hamiMemory(devices)
	isolation := gpuinfo.Hardware
	for _, device := range devices {
		if device.Mode != "mig" {
			isolation = gpuinfo.Limit
		}
	}
	return r.is(gpuinfo.VGPU, isolation)
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
		if most := int64(r.product.GB) * 1024; r.productKnown && device.Memory > most {
			r.problem(MemoryOvercommitted, fmt.Sprintf("HAMi registers %d MiB of a %s, which has at most %d MiB",
				device.Memory, r.product.Name, most))
			same = false
		}
	}
	if same && devices[0].Cores <= 100 {
		r.gpus.CardMemoryMiB = &memory
	}
}

// hamiSilent reports an agent that does not respond. The scheduler writes Requesting_<time>, the agent replies with
// Reported, and Deleted_<time> means that it did not. Without a clock, a request alone shows nothing.
func (r *reading) hamiSilent() {
	for _, key := range []string{hamiHandshake, "NVIDIA"} {
		if value := r.node.Annotations[key]; strings.HasPrefix(value, "Deleted") {
			r.problem(AgentSilent,
				fmt.Sprintf("%s=%s: HAMi's agent does not respond, and HAMi schedules nothing here", key, value))
		}
	}
}

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

// perCard divides a sum of memory over the cards, which are alike on a node.
func (r *reading) perCard(resource string, sum int64) {
	if r.gpus.Cards != nil && *r.gpus.Cards > 0 && sum%*r.gpus.Cards == 0 {
		r.gpus.UnitsPerCard = map[string]int64{resource: sum / *r.gpus.Cards}
	}
}

// readGPUMemory recognizes cards whose memory ACK, or the open-source gpushare that it came from, shares. ACK labels
// its nodes with the kind of isolation; gpushare has no such labels and isolates nothing. The number of cards beside an
// amount of 0 shows the same kind: the kubelet sets the amount of a plugin that does not respond to 0.
func (r *reading) readGPUMemory() bool {
	sum, announced := r.gpus.Units[gpuinfo.AliyunMemory]
	switch {
	case max(sum, r.node.Capacity[gpuinfo.AliyunMemory]) > 0:
		r.perCard(gpuinfo.AliyunMemory, sum)
		r.memory(gpuinfo.AliyunMemory, r.gpuMemoryUnit(sum))
	case announced && r.gpus.Units[gpuinfo.AliyunCount] > 0 && len(r.announced()) == 0:
		r.perCard(gpuinfo.AliyunMemory, 0)
		r.problem(MemoryMissing, fmt.Sprintf("%s is 0 beside %s %d, so no request for memory fits: the device plugin "+
			"announces nothing", gpuinfo.AliyunMemory, gpuinfo.AliyunCount, r.gpus.Units[gpuinfo.AliyunCount]))
	default:
		return false
	}
	isolation := gpuinfo.NoIsolation
	switch value := r.label(labelACKMode); {
	case value != "":
		mode, err := gpuinfo.ParseACKMode(value)
		if err != nil {
			r.problem(LabelUnreadable, err.Error())
		}
		isolation = mode.Isolation()
	case r.label("cgpu") == "true":
		isolation = gpuinfo.Limit // the label of older releases
	case r.label(labelACKPlacement) != "":
		isolation = gpuinfo.UnknownIsolation
	}
	return r.is(gpuinfo.GPUMemory, isolation)
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

// gpuMemoryUnit returns the MiB of one unit: 1024, unless gpushare is configured to count MiB, or ACK's share mode to
// count 128 MiB. If the memory of a card is known, one of the three must match it. Otherwise the size distinguishes GiB
// from MiB if it can; 0 means that it cannot.
func (r *reading) gpuMemoryUnit(sum int64) int64 {
	const (
		gib, share, mib = 1024, 128, 1
		// No card has more GiB, and no shared card has fewer MiB.
		mostGiB, leastMiB = 512, 2048
	)
	if ok, err := r.names.Resource(gpuinfo.AliyunMemory); err == nil && ok.Unit > 0 {
		return int64(ok.Unit)
	}
	perCard, known := r.gpus.UnitsPerCard[gpuinfo.AliyunMemory]
	if card := r.gpus.CardMemoryMiB; known && card != nil {
		for _, unit := range []int64{gib, share, mib} {
			// A card's memory is rounded to units, up or down, and a part of it can be reserved.
			if total := perCard * unit; total < *card+unit && 10*(total+unit) >= 9**card {
				return unit
			}
		}
		return 0
	}
	if !known {
		perCard = sum
	}
	switch {
	case r.label(labelACKMode) == string(gpuinfo.ACKShare):
		return 0
	case perCard <= mostGiB:
		return gib
	case known && perCard >= leastMiB || !known && sum > mostCards*mostGiB:
		return mib
	}
	return 0
}
