// Package gpuinfo is what a GPU is: products, MIG profiles and where their instances may lie, the names under which
// Kubernetes announces GPUs and shares of them, and what clouds promise about those names. It is tables and arithmetic,
// one table per fact and each row with its source; it asks no machine and guesses nothing: what no source tells is
// unknown, not zero.
//
// Sources are named shortly: MUG is NVIDIA's MIG User Guide ("Supported MIG Profiles"), lgipp is what `nvidia-smi mig
// -lgipp` printed on real cards, mig-parted its default configuration, NDP the source of NVIDIA's device plugin with
// its feature discovery, AKS and ACK the documentation of those clouds.
package gpuinfo
