//go:build !nvml || !cgo || !linux

package main

import "errors"

// askNVML fails and says which build can ask the driver: NVML's library needs cgo.
func askNVML() (gpuDriver, error) {
	return nil, errors.New(
		"this build cannot ask NVIDIA's driver; `make agent` makes one that can (Linux, cgo, build tag nvml)",
	)
}
