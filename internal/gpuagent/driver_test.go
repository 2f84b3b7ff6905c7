package gpuagent

import (
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// fakeDriver returns a fixed inventory and some XIDs, or an error.
type fakeDriver struct {
	inventory gpuinfo.Inventory
	err       error
	// xids are the events to return, one at a time. The driver calls silence after the last one. deaf is the error of a
	// driver that does not support XID events.
	xids      []gpuinfo.XIDEvent
	silence   func() error
	unwatched []int
	deaf      error
}

func (f *fakeDriver) Inventory() (gpuinfo.Inventory, error) { return f.inventory, f.err }
func (f *fakeDriver) WatchXIDs() ([]int, error)             { return f.unwatched, f.deaf }

func (f *fakeDriver) NextXID(time.Duration) (event gpuinfo.XIDEvent, happened bool, err error) {
	if len(f.xids) == 0 {
		return event, false, f.silence()
	}
	event, f.xids = f.xids[0], f.xids[1:]
	return event, true, nil
}

func a100Card(index int) gpuinfo.Card {
	total, free := gpuinfo.MiB(40960), gpuinfo.MiB(40442)
	return gpuinfo.Card{Index: index, UUID: "GPU-" + string(rune('a'+index)), Product: "NVIDIA A100-SXM4-40GB", Memory: &total, Free: &free, Healthy: true,
		Cut: &gpuinfo.Cut{Instances: []gpuinfo.GPUInstance{}}}
}

func cutA100(index int, instances ...gpuinfo.Instance) gpuinfo.Card {
	card := a100Card(index)
	card.Cut.Enabled, card.Cut.Pending = true, true
	for i, instance := range instances {
		card.Cut.Instances = append(card.Cut.Instances, gpuinfo.GPUInstance{ID: uint32(i), Instance: instance, Compute: 1})
	}
	return card
}
