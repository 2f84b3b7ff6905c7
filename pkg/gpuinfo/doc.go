// Package gpuinfo describes GPUs: the products, the MIG profiles and the legal placements of their instances, the names
// under which Kubernetes announces GPUs and shares of GPUs, and what clouds document about those names. It contains
// tables and arithmetic, with one table for each kind of fact and a source for each row. It must not query a machine,
// and it must not guess: a value that no source documents is unknown, not zero.
//
// Short names of sources: MUG is NVIDIA's MIG User Guide ("Supported MIG Profiles"), lgipp is the output of `nvidia-smi
// mig -lgipp` on real cards, mig-parted is its default configuration, NDP is the source code of NVIDIA's device plugin
// with its feature discovery, AKS and ACK are the documentation of those clouds.
package gpuinfo
