//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

const uuid0 = "GPU-00000000-1111-2222-3333-444444444444"

// server returns go-nvml's simulated DGX A100, with the queries that the simulation does not have.
func server(t *testing.T) (*dgxa100.Server, []*dgxa100.Device) {
	t.Helper()
	s := dgxa100.New()
	var devices []*dgxa100.Device
	for _, d := range s.Devices {
		device := d.(*dgxa100.Device)
		device.Name = "NVIDIA A100-SXM4-40GB"
		device.MemoryInfo = nvml.Memory{Total: 40960 << 20, Used: 518 << 20, Free: 40442 << 20}
		device.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 0, nvml.SUCCESS }
		device.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.SUCCESS }
		device.GetRetiredPagesFunc = func(nvml.PageRetirementCause) ([]uint64, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		devices = append(devices, device)
	}
	devices[0].UUID = uuid0
	return s, devices
}

func inventory(t *testing.T, library nvml.Interface) gpuinfo.Inventory {
	t.Helper()
	machine, err := open(library)
	if err != nil {
		t.Fatal(err)
	}
	found, err := machine.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Close(); err != nil {
		t.Fatal(err)
	}
	return found
}

func of[T any](value T) *T { return &value }

// cut creates an instance as `nvidia-smi mig -cgi` does, with this number of compute instances that have all its
// slices.
func cut(t *testing.T, device *dgxa100.Device, number, start, size, compute int) *dgxa100.GpuInstance {
	t.Helper()
	device.MigMode = nvml.DEVICE_MIG_ENABLE
	profile, ret := device.GetGpuInstanceProfileInfo(number)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	created, ret := device.CreateGpuInstanceWithPlacement(&profile, &nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(size)})
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	for range compute {
		info, ret := created.GetComputeInstanceProfileInfo(0, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		if _, ret := created.CreateComputeInstance(&info); ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
	}
	return created.(*dgxa100.GpuInstance)
}

func TestAMachineTellsItsDriverAndEachCard(t *testing.T) {
	s, _ := server(t)
	found := inventory(t, s)
	want := gpuinfo.Card{
		Index: 0, UUID: uuid0, Product: "NVIDIA A100-SXM4-40GB",
		Memory: of(gpuinfo.MiB(40960)), Used: of(gpuinfo.MiB(518)), Free: of(gpuinfo.MiB(40442)),
		Cut:         &gpuinfo.Cut{Instances: []gpuinfo.GPUInstance{}},
		Uncorrected: of(uint64(0)), Rows: &gpuinfo.RemappedRows{}, Healthy: true,
	}
	if diff := cmp.Diff(want, found.Cards[0]); diff != "" {
		t.Errorf("card 0 (-want +got):\n%s", diff)
	}
	if found.Driver != "550.54.15" || len(found.Cards) != 8 || found.Cards[7].Index != 7 {
		t.Errorf("driver %s with %d cards", found.Driver, len(found.Cards))
	}
}

func TestInstancesAreNamedAsThePlacementTablesNameThem(t *testing.T) {
	s, devices := server(t)
	cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV2, 6, 2, 1)
	cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_3_SLICE, 0, 4, 2)
	cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1, 4, 1, 0)
	cut(t, devices[1], nvml.GPU_INSTANCE_PROFILE_7_SLICE, 0, 8, 1)
	found := inventory(t, s)
	want := []gpuinfo.GPUInstance{
		{ID: 1, Instance: gpuinfo.Instance{Profile: "3g.20gb", Start: 0}, Size: 4, Compute: 2},
		{ID: 2, Instance: gpuinfo.Instance{Profile: "1g.5gb+me", Start: 4}, Size: 1},
		{ID: 0, Instance: gpuinfo.Instance{Profile: "1g.10gb", Start: 6}, Size: 2, Compute: 1},
	}
	if diff := cmp.Diff(want, found.Cards[0].Cut.Instances); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	product, known := gpuinfo.ProductOf(found.Cards[0].Product)
	if err := product.Check(found.Cards[0].Cut.Layout()); !known || err != nil {
		t.Errorf("the layout is not legal by the tables: %v", err)
	}
	if got := found.Cards[1].Cut.Instances; len(got) != 1 || got[0].Profile != "7g.40gb" {
		t.Errorf("card 1 has %v", got)
	}
}

func TestAProfileOfAnUnknownProductIsNamedBySlicesAndMemory(t *testing.T) {
	s, devices := server(t)
	devices[0].Name = "NVIDIA C100"
	cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_2_SLICE, 2, 2, 1)
	if got := inventory(t, s).Cards[0].Cut.Instances[0].Profile; got != "2g.10gb" {
		t.Errorf("got %s, want 2g.10gb: a quarter of 40 GiB", got)
	}
}

// The driver of an A30 reports too few instances, and go-nvml would read past the end of its buffer.
func TestMoreInstancesThanTheDriverSaysAreAllFound(t *testing.T) {
	s, devices := server(t)
	for start := range 4 {
		cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_1_SLICE, start, 1, 1)
	}
	whole := devices[0].GetGpuInstanceProfileInfoFunc
	devices[0].GetGpuInstanceProfileInfoFunc = func(number int) (nvml.GpuInstanceProfileInfo, nvml.Return) {
		info, ret := whole(number)
		info.InstanceCount = 0
		return info, ret
	}
	list := devices[0].GetGpuInstancesFunc
	devices[0].GetGpuInstancesFunc = func(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstance, nvml.Return) {
		found, ret := list(info)
		return found[:min(len(found), int(info.InstanceCount))], ret
	}
	if got := inventory(t, s).Cards[0].Cut.Instances; len(got) != 4 {
		t.Errorf("%d instances, want 4: %v", len(got), got)
	}
}

// A list without the instances of some profiles would show free units that are in use.
func TestInstancesAreUnknownWhereOneListIsRefused(t *testing.T) {
	s, devices := server(t)
	cut(t, devices[0], nvml.GPU_INSTANCE_PROFILE_1_SLICE, 0, 1, 1)
	devices[0].GetGpuInstancesFunc = func(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstance, nvml.Return) {
		return nil, nvml.ERROR_NO_PERMISSION
	}
	card := inventory(t, s).Cards[0]
	if !card.Cut.Enabled || card.Cut.Instances != nil || !card.Healthy {
		t.Errorf("got %+v of a card that is healthy %v", card.Cut, card.Healthy)
	}
}

func TestCardsAreUnhealthyForAReason(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*dgxa100.Server, *dgxa100.Device)
		want   string
	}{
		"a card that fell off the bus": {func(s *dgxa100.Server, d *dgxa100.Device) {
			d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
		}, "fallen off the bus"},
		"a card that waits for a reset": {func(s *dgxa100.Server, d *dgxa100.Device) {
			d.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_RESET_REQUIRED }
		}, "must be reset"},
		"a card that has no handle": {func(s *dgxa100.Server, d *dgxa100.Device) {
			handle := s.DeviceGetHandleByIndexFunc
			s.DeviceGetHandleByIndexFunc = func(index int) (nvml.Device, nvml.Return) {
				if index == 0 {
					return nil, nvml.ERROR_GPU_IS_LOST
				}
				return handle(index)
			}
		}, "cannot open the card"},
		"a card with no spare rows": {func(s *dgxa100.Server, d *dgxa100.Device) {
			d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 7, true, true, nvml.SUCCESS }
		}, "after 8 that were: replace the card"},
		"a card that answers nonsense": {func(s *dgxa100.Server, d *dgxa100.Device) {
			d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_UNKNOWN }
		}, "does not report the card's memory"},
	} {
		t.Run(name, func(t *testing.T) {
			s, devices := server(t)
			test.breaks(s, devices[0])
			found := inventory(t, s)
			if card := found.Cards[0]; card.Healthy || !strings.Contains(card.Problem, test.want) {
				t.Errorf("healthy %v, problem %q, want %q", card.Healthy, card.Problem, test.want)
			}
			if !found.Cards[1].Healthy {
				t.Errorf("its neighbour is told broken: %s", found.Cards[1].Problem)
			}
		})
	}
}

func TestWhatADriverDoesNotSupportIsUnknownAndNoFault(t *testing.T) {
	s, devices := server(t)
	d := devices[0]
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NO_PERMISSION }
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.ERROR_NOT_SUPPORTED }
	want := gpuinfo.Card{UUID: uuid0, Product: "NVIDIA A100-SXM4-40GB", Healthy: true}
	if diff := cmp.Diff(want, inventory(t, s).Cards[0]); diff != "" {
		t.Errorf("card 0 (-want +got):\n%s", diff)
	}
}

func TestACardFromBeforeAmpereTellsItsRetiredPages(t *testing.T) {
	s, devices := server(t)
	devices[0].GetRetiredPagesFunc = func(cause nvml.PageRetirementCause) ([]uint64, nvml.Return) {
		if cause == nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR {
			return []uint64{0x1000}, nvml.SUCCESS
		}
		return []uint64{0x2000, 0x3000}, nvml.SUCCESS
	}
	devices[0].GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	found := inventory(t, s)
	if diff := cmp.Diff(&gpuinfo.RetiredPages{SingleBit: 2, DoubleBit: 1, Pending: true}, found.Cards[0].Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if got := found.Cards[1].Pages; got != nil {
		t.Errorf("a card without such pages tells %+v", *got)
	}
}

// A call of a function that the driver does not have would end the process. go-nvml's mocks panic on a call of a
// function that is not set.
func TestFunctionsThatTheDriverHasNotAreNotCalled(t *testing.T) {
	s, devices := server(t)
	s.LookupSymbolFunc = func(symbol string) error { return errors.New("undefined symbol: " + symbol) }
	for _, d := range devices {
		d.GetMigModeFunc, d.GetRemappedRowsFunc = nil, nil
	}
	card := inventory(t, s).Cards[0]
	if card.Cut != nil || card.Rows != nil || !card.Healthy {
		t.Errorf("got %+v", card)
	}
}

// Any call before a successful Init ends the process, which a test could not report. With the mock it panics.
func TestNothingIsCalledBeforeASuccessfulInit(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver: libnvidia-ml.so.1 is not found",
		nvml.ERROR_DRIVER_NOT_LOADED: "no NVIDIA driver: libnvidia-ml.so.1 is present, but the kernel module is not loaded",
	} {
		library := &mock.Interface{InitFunc: func() nvml.Return { return ret }}
		if _, err := open(library); !errors.Is(err, ErrNoDriver) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	library := &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIB_RM_VERSION_MISMATCH }}
	if _, err := open(library); err == nil || errors.Is(err, ErrNoDriver) {
		t.Errorf("library and module of different releases: got %v", err)
	}
}

func TestACardThatIsKeptFromThisProcessIsNotCalledBroken(t *testing.T) {
	s, _ := server(t)
	s.DeviceGetHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_NO_PERMISSION }
	machine, err := open(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Inventory(); !errors.Is(err, nvml.ERROR_NO_PERMISSION) || !strings.Contains(err.Error(), "opening card 0") {
		t.Errorf("got %v", err)
	}
}

// This test uses the real library. Open returns ErrNoDriver on a machine without a driver, and the cards otherwise.
func TestThisMachine(t *testing.T) {
	machine, err := Open()
	if errors.Is(err, ErrNoDriver) {
		t.Skipf("no GPU to ask: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	found, err := machine.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	for _, card := range found.Cards {
		t.Logf("%+v", card)
		if card.Healthy && (card.UUID == "" || card.Product == "" || card.Memory == nil) {
			t.Errorf("card %d does not tell who it is: %+v", card.Index, card)
		}
	}
}
