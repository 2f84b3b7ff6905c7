package sharing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Labels of GKE.
const (
	LabelGKEAccelerator = "cloud.google.com/gke-accelerator"
	labelGKESharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	labelGKEClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	labelGKEPartition   = "cloud.google.com/gke-gpu-partition-size"
	labelGKENoPlugin    = "gke-no-default-nvidia-gpu-device-plugin"
)

// readGKE recognizes GKE's own plugin, which writes no labels of feature discovery. A pool can have partitions, and
// share each card or partition among a number of clients. All of it is announced as nvidia.com/gpu.
func (r *reading) readGKE() bool {
	partition, sharing := r.label(labelGKEPartition), r.label(labelGKESharing)
	if partition == "" && sharing == "" {
		return false
	}
	if partition != "" {
		if !r.gkePartition(partition) {
			return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
		}
		if cards, _, known := r.cardCount(); known {
			r.cards(cards)
		}
	}
	switch sharing {
	case "":
		return r.is(gpuinfo.MIG, gpuinfo.Hardware)
	case "time-sharing", "mps":
		if clients, ok := r.number(labelGKEClients); ok && clients > 0 {
			r.gpus.Replicas = &clients
			if partition == "" {
				r.cardsOfShares(clients)
			}
		}
		if sharing == "mps" {
			return r.is(gpuinfo.MPS, gpuinfo.Limit)
		}
		return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
	}
	r.problem(LabelUnreadable, labelGKESharing+"="+sharing+": want time-sharing or mps")
	return true
}

// gkePartition reads the profile of a pool's partitions; false if its cards cannot have it.
func (r *reading) gkePartition(partition string) bool {
	if _, err := gpuinfo.ParseProfile(partition); err != nil {
		r.problem(LabelUnreadable, labelGKEPartition+": "+err.Error())
		return false
	}
	r.gpus.Profile = &partition
	return !r.unknownProfile(labelGKEPartition, partition)
}
