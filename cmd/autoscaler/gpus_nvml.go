//go:build nvml && cgo && linux

package main

import "heliostat.dev/heliostat/pkg/gpuinfo/nvml"

// askNVML starts the driver's library.
func askNVML() (gpuDriver, error) {
	machine, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	return machine, nil
}
