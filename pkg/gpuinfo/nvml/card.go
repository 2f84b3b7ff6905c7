//go:build nvml && cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// reading is the state while one card is read.
type reading struct {
	machine *Machine
	device  nvml.Device
	card    gpuinfo.Card
}

func (m *Machine) card(index int) (gpuinfo.Card, error) {
	r := reading{machine: m, card: gpuinfo.Card{Index: index, Healthy: true}}
	device, ret := m.library.DeviceGetHandleByIndex(index)
	switch r.device = device; {
	case ret == nvml.ERROR_NO_PERMISSION:
		return r.card, failure(ret)
	case ret != nvml.SUCCESS:
		r.unhealthy("the driver cannot open the card: " + failure(ret).Error())
		return r.card, nil
	}
	r.readIdentity()
	r.readMemory()
	r.readMIG()
	r.readErrors()
	r.readRows()
	r.readPages()
	return r.card, nil
}

// unhealthy marks the card unhealthy and keeps the first reason.
func (r *reading) unhealthy(problem string) {
	if r.card.Healthy {
		r.card.Healthy, r.card.Problem = false, problem
	}
}

// answered reports whether the driver answered a query. A card that is lost or waits for a reset returns that error for
// every query. An unsupported or forbidden query says nothing about the health of the card.
func (r *reading) answered(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		r.unhealthy("the card has fallen off the bus or is not accessible")
	case nvml.ERROR_RESET_REQUIRED:
		r.unhealthy("the card must be reset before it can be used again")
	}
	return ret == nvml.SUCCESS
}

func (r *reading) readIdentity() {
	if uuid, ret := r.device.GetUUID(); r.answered(ret) {
		r.card.UUID = uuid
	}
	if name, ret := r.device.GetName(); r.answered(ret) {
		r.card.Product = name
	}
}

func (r *reading) readMemory() {
	memory, ret := r.device.GetMemoryInfo()
	switch {
	case r.answered(ret):
		r.card.Memory, r.card.Used, r.card.Free = mib(memory.Total), mib(memory.Used), mib(memory.Free)
	case ret != nvml.ERROR_NOT_SUPPORTED && ret != nvml.ERROR_NO_PERMISSION:
		r.unhealthy("the driver does not report the card's memory: " + failure(ret).Error())
	}
}

func mib(bytes uint64) *gpuinfo.MiB {
	n := gpuinfo.MiB(bytes >> 20)
	return &n
}

func (r *reading) readErrors() {
	if n, ret := r.device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); r.answered(ret) {
		r.card.Uncorrected = &n
	}
}

// readRows reads the remapped rows. A failed remapping means that no spare rows are left; NVIDIA takes such cards back.
func (r *reading) readRows() {
	if !r.machine.has("nvmlDeviceGetRemappedRows") {
		return
	}
	corrected, uncorrected, pending, failed, ret := r.device.GetRemappedRows()
	if !r.answered(ret) {
		return
	}
	r.card.Rows = &gpuinfo.RemappedRows{Corrected: corrected, Uncorrected: uncorrected, Pending: pending,
		Failed: failed}
	if failed {
		r.unhealthy(fmt.Sprintf("a memory row could not be remapped, after %d that were: replace the card",
			corrected+uncorrected))
	}
}

// readPages reads the retired pages. Cards that cannot remap rows retire whole pages of memory.
func (r *reading) readPages() {
	single, ret := r.device.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)
	if !r.answered(ret) {
		return
	}
	double, ret := r.device.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
	if !r.answered(ret) {
		return
	}
	r.card.Pages = &gpuinfo.RetiredPages{SingleBit: len(single), DoubleBit: len(double)}
	if pending, ret := r.device.GetRetiredPagesPendingStatus(); r.answered(ret) {
		r.card.Pages.Pending = pending == nvml.FEATURE_ENABLED
	}
}
