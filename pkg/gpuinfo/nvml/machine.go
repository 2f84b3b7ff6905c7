//go:build nvml && cgo && linux

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// ErrNoDriver means that this machine, or this container, has no NVIDIA driver.
var ErrNoDriver = errors.New("no NVIDIA driver")

// Machine is the driver of this machine. Only one goroutine can use it at a time.
type Machine struct {
	library nvml.Interface
	// events reports XIDs of the watched cards; nil before WatchXIDs.
	events  nvml.EventSet
	watched []watchedCard
}

// Open loads the driver's library. The error wraps ErrNoDriver if there is none. Close the Machine after use.
func Open() (*Machine, error) { return open(nvml.New()) }

func open(library nvml.Interface) (*Machine, error) {
	switch ret := library.Init(); ret {
	case nvml.SUCCESS:
		return &Machine{library: library}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is not found", ErrNoDriver)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("%w: libnvidia-ml.so.1 is present, but the kernel module is not loaded", ErrNoDriver)
	default:
		return nil, fmt.Errorf("starting NVML: %w", failure(ret))
	}
}

// Close unloads the library.
func (m *Machine) Close() error {
	err := m.unwatch()
	if ret := m.library.Shutdown(); ret != nvml.SUCCESS {
		err = errors.Join(err, fmt.Errorf("ending NVML: %w", failure(ret)))
	}
	return err
}

// Inventory reads all cards. A card that the driver cannot reach is included as unhealthy. An error means that the
// driver does not respond, or denies this process access to a card; the health of that card is then unknown.
func (m *Machine) Inventory() (gpuinfo.Inventory, error) {
	driver, ret := m.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return gpuinfo.Inventory{}, fmt.Errorf("reading the driver's version: %w", failure(ret))
	}
	n, ret := m.library.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return gpuinfo.Inventory{}, fmt.Errorf("counting cards: %w", failure(ret))
	}
	inventory := gpuinfo.Inventory{Driver: driver, Cards: make([]gpuinfo.Card, 0, n)}
	for index := range n {
		card, err := m.card(index)
		if err != nil {
			return gpuinfo.Inventory{}, fmt.Errorf("opening card %d: %w", index, err)
		}
		inventory.Cards = append(inventory.Cards, card)
	}
	return inventory, nil
}

// has reports whether this release of the driver has a function. Calling a missing one ends the process.
func (m *Machine) has(function string) bool {
	return m.library.Extensions().LookupSymbol(function) == nil
}

// failure converts a return code to an error. NVML's own texts are available only after the library is loaded.
func failure(ret nvml.Return) error { return fmt.Errorf("NVML returned %w", ret) }
