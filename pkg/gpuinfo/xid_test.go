package gpuinfo_test

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The two lists as their sources publish them.
var (
	pluginIgnored = []uint64{13, 31, 43, 45, 68, 109}
	eksFatal      = []uint64{46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}
)

func TestXIDsAreFatalAsTheirSourcesSay(t *testing.T) {
	for _, number := range pluginIgnored {
		if x, known := gpuinfo.XIDOf(number); !known || x.Fatal {
			t.Errorf("XID %d: known %v, fatal %v; the device plugin lets the card go on", number, known, x.Fatal)
		}
	}
	for number := range uint64(200) {
		// NVIDIA's verdict differs for 63 and 109.
		want := slices.Contains(eksFatal, number) && number != 63 && number != 109
		if x, known := gpuinfo.XIDOf(number); x.Fatal != want || x.Number != number || known && x.Source == "" {
			t.Errorf("XID %d: %+v, want fatal %v", number, x, want)
		}
	}
}

func TestAnXIDIsWrittenWithItsMeaningAndInstance(t *testing.T) {
	instance := uint32(3)
	for want, event := range map[string]gpuinfo.XIDEvent{
		"XID 79: the card has fallen off the bus":            xidEvent(79, nil),
		"XID 95 in GPU instance 3: uncontained memory error": xidEvent(95, &instance),
		"XID 158: fatal": xidEvent(158, nil),
		"XID 199":        xidEvent(199, nil),
		"XID 13 in GPU instance 3: graphics engine exception": xidEvent(13, &instance),
		"XID 154: carries the recommended recovery action":    xidEvent(154, nil),
	} {
		if got := event.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func xidEvent(number uint64, instance *uint32) gpuinfo.XIDEvent {
	x, _ := gpuinfo.XIDOf(number)
	return gpuinfo.XIDEvent{XID: x, Instance: instance}
}
