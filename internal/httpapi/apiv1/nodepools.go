package apiv1

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// NodepoolsReport describes nodes and pools; nil means unknown.
type NodepoolsReport struct {
	Nodes []nodegpu.GPUs `json:"nodes"`
	Pools []pools.Pool   `json:"pools"`
	// Notes say what Heliostat could not read.
	Notes []string `json:"notes"`
}
