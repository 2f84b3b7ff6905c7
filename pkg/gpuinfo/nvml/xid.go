//go:build nvml && cgo && linux

package nvml

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// WatchXIDs starts to report XIDs. It returns the cards for which the card or the hypervisor does not support this.
func (m *Machine) WatchXIDs() (unwatched []int, err error) {
	n, ret := m.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("counting cards: %w", failure(ret))
	}
	events, ret := m.library.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("registering for XIDs: %w", failure(ret))
	}
	for index := range n {
		device, ret := m.library.DeviceGetHandleByIndex(index)
		if ret == nvml.SUCCESS {
			ret = register(device, events)
		}
		if ret != nvml.SUCCESS {
			unwatched = append(unwatched, index)
			continue
		}
		m.watched = append(m.watched, watchedCard{index, device})
	}
	m.events = events
	return unwatched, nil
}

// register requests only supported events, because a request for any other event fails.
func register(device nvml.Device, events nvml.EventSet) nvml.Return {
	types, ret := device.GetSupportedEventTypes()
	switch {
	case ret != nvml.SUCCESS:
		return ret
	case types&nvml.EventTypeXidCriticalError == 0:
		return nvml.ERROR_NOT_SUPPORTED
	}
	return device.RegisterEvents(nvml.EventTypeXidCriticalError, events)
}

// watchedCard is a card whose XIDs are reported. Its handle is stable while the library is loaded.
type watchedCard struct {
	index  int
	device nvml.Device
}

// wholeCard is the instance of an XID of a whole card.
const wholeCard = ^uint32(0)

// NextXID waits up to timeout for the next XID after WatchXIDs; happened is false if there was none.
func (m *Machine) NextXID(timeout time.Duration) (event gpuinfo.XIDEvent, happened bool, err error) {
	data, ret := m.events.Wait(uint32(timeout.Milliseconds()))
	switch {
	case ret == nvml.ERROR_TIMEOUT:
		return event, false, nil
	case ret != nvml.SUCCESS:
		return event, false, fmt.Errorf("waiting for XIDs: %w", failure(ret))
	case data.EventType != nvml.EventTypeXidCriticalError:
		return event, false, nil
	}
	event.XID, _ = gpuinfo.XIDOf(data.EventData)
	if data.GpuInstanceId != wholeCard {
		event.Instance = &data.GpuInstanceId
	}
	// Compare handles: a card that has fallen off the bus no longer reports its UUID.
	for _, card := range m.watched {
		if card.device == data.Device {
			event.Card = &card.index
		}
	}
	return event, true, nil
}

// unwatch frees what WatchXIDs registered.
func (m *Machine) unwatch() error {
	if m.events == nil {
		return nil
	}
	if ret := m.events.Free(); ret != nvml.SUCCESS {
		return fmt.Errorf("unregistering from XIDs: %w", failure(ret))
	}
	return nil
}
