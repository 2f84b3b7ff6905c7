// Package nvml asks NVIDIA's driver what cards a machine has, in the words of package gpuinfo. It is the only place
// that knows NVML and cgo, and there is something in it only with cgo and the build tag nvml, on Linux: `make agent`
// builds so. It reads and never changes a card.
//
// NVML ends the process, with nothing that Go could catch, when a function is called before the library was loaded, or
// one that this release of the driver does not have. So a Machine exists only after a successful Init, and functions
// that not every driver has are called where the library has them.
package nvml
