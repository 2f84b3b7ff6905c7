//go:build !nvml || !cgo || !linux

package main

import "errors"

// askNVML says how to get a program that can: this one is pure Go, which NVML's library needs more than.
func askNVML() (gpuDriver, error) {
	return nil, errors.New(
		"this build cannot ask NVIDIA's driver; `make agent` makes one that can (Linux, cgo, build tag nvml)",
	)
}
