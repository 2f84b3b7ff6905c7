//go:build nvml && cgo && linux

package main

import "heliostat.dev/heliostat/pkg/gpuinfo/nvml"

// askNVML loads the driver's library.
func askNVML() (gpuDriver, error) {
	machine, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	return machine, nil
}
