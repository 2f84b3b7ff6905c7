//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// eventServer returns a server whose cards report these events, in this order, and none after them.
func eventServer(t *testing.T, told func([]*dgxa100.Device) []nvml.EventData) (*dgxa100.Server, []*dgxa100.Device, *mock.EventSet) {
	t.Helper()
	s, devices := server(t)
	queue := told(devices)
	events := &mock.EventSet{
		FreeFunc: func() nvml.Return { return nvml.SUCCESS },
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			if len(queue) == 0 {
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
			next := queue[0]
			queue = queue[1:]
			return next, nvml.SUCCESS
		},
	}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return events, nvml.SUCCESS }
	for _, d := range devices {
		d.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
			return nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError, nvml.SUCCESS
		}
		d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
	}
	return s, devices, events
}

func watch(t *testing.T, s *dgxa100.Server, wantUnwatched ...int) *Machine {
	t.Helper()
	machine, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	unwatched, err := machine.WatchXIDs()
	if diff := cmp.Diff(wantUnwatched, unwatched); err != nil || diff != "" {
		t.Fatalf("error %v, unwatched (-want +got):\n%s", err, diff)
	}
	return machine
}

func xidData(device nvml.Device, number uint64, instance uint32) nvml.EventData {
	return nvml.EventData{Device: device, EventType: nvml.EventTypeXidCriticalError, EventData: number, GpuInstanceId: instance, ComputeInstanceId: wholeCard}
}

func TestXIDsAreToldWithTheirCardAndInstance(t *testing.T) {
	s, devices, events := eventServer(t, func(devices []*dgxa100.Device) []nvml.EventData {
		stranger := &mock.Device{}
		return []nvml.EventData{xidData(devices[1], 79, wholeCard), xidData(devices[0], 95, 3), xidData(stranger, 48, wholeCard),
			{Device: devices[0], EventType: nvml.EventTypeDoubleBitEccError, EventData: 7, GpuInstanceId: wholeCard}}
	})
	// A card that has fallen off the bus does not report its UUID.
	devices[1].GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	machine := watch(t, s)
	for _, want := range []struct {
		text string
		card *int
	}{
		{"XID 79: the card has fallen off the bus", of(1)},
		{"XID 95 in GPU instance 3: uncontained memory error", of(0)},
		{"XID 48: double-bit memory error", nil},
	} {
		event, happened, err := machine.NextXID(time.Second)
		if err != nil || !happened || event.String() != want.text || !cmp.Equal(event.Card, want.card) {
			t.Errorf("got %s of card %v, happened %v, error %v; want %+v", event, event.Card, happened, err, want)
		}
	}
	for _, why := range []string{"another event than an XID", "none"} {
		if event, happened, err := machine.NextXID(1500 * time.Millisecond); happened || err != nil {
			t.Errorf("%s: got %s, error %v", why, event, err)
		}
	}
	if got := events.WaitCalls()[4].V; got != 1500 {
		t.Errorf("waited %d ms, want 1500", got)
	}
	if err := machine.Close(); err != nil || len(events.FreeCalls()) != 1 {
		t.Errorf("closing: %v, the set was freed %d times", err, len(events.FreeCalls()))
	}
}

// A request for an unsupported event fails; with some drivers, it also fails for the other cards.
func TestOnlyCardsThatSupportXIDsAreAskedForThem(t *testing.T) {
	s, devices, _ := eventServer(t, func([]*dgxa100.Device) []nvml.EventData { return nil })
	devices[2].GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeDoubleBitEccError, nvml.SUCCESS }
	devices[4].GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	devices[6].RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.ERROR_UNKNOWN }
	watch(t, s, 2, 4, 6)
	for index, want := range map[int]int{0: 1, 2: 0, 4: 0, 6: 1} {
		if got := len(devices[index].RegisterEventsCalls()); got != want {
			t.Errorf("card %d was asked %d times, want %d", index, got, want)
		}
	}
	if got := devices[0].RegisterEventsCalls()[0].V; got != nvml.EventTypeXidCriticalError {
		t.Errorf("asked for events %#x", got)
	}
}

func TestWhatADriverCannotTellOfXIDsIsAnError(t *testing.T) {
	s, _, events := eventServer(t, func([]*dgxa100.Device) []nvml.EventData { return nil })
	machine := watch(t, s)
	events.WaitFunc = func(uint32) (nvml.EventData, nvml.Return) { return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST }
	if _, happened, err := machine.NextXID(time.Second); happened || !errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		t.Errorf("happened %v, error %v", happened, err)
	}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
	deaf, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deaf.WatchXIDs(); !errors.Is(err, nvml.ERROR_NOT_SUPPORTED) {
		t.Errorf("got %v", err)
	}
	if err := deaf.Close(); err != nil {
		t.Errorf("closing what hears of nothing: %v", err)
	}
}

func TestAnXIDThatNobodyJudgedKeepsItsNumber(t *testing.T) {
	s, _, _ := eventServer(t, func(devices []*dgxa100.Device) []nvml.EventData {
		return []nvml.EventData{xidData(devices[0], 777, wholeCard)}
	})
	event, happened, err := watch(t, s).NextXID(time.Second)
	want := gpuinfo.XIDEvent{XID: gpuinfo.XID{Number: 777}, Card: of(0)}
	if diff := cmp.Diff(want, event); err != nil || !happened || diff != "" {
		t.Errorf("happened %v, error %v (-want +got):\n%s", happened, err, diff)
	}
}
