// Package nvml reads the cards of a machine from NVIDIA's driver, and reports them with the types of package gpuinfo.
// It is the only package that uses NVML and cgo. It is empty without cgo and the build tag nvml, and on systems other
// than Linux; `make agent` builds with both. It must not change a card.
//
// NVML ends the process, and Go cannot prevent that, after a call before the library is loaded, or a call of a function
// that this release of the driver does not have. A Machine therefore exists only after a successful Init, and the
// package calls newer functions only if the library has them.
package nvml
