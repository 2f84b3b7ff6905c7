package apiv1

import (
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// NodepoolsReport describes nodes and pools; nil means unknown.
type NodepoolsReport struct {
	Nodes []sharing.GPUs `json:"nodes"`
	Pools []landing.Pool `json:"pools"`
	// Notes say what Heliostat could not read.
	Notes []string `json:"notes"`
}
