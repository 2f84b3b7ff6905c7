package apiv1

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// NodepoolsReport is what is understood of nodes and pools; nil stands for what is not known.
type NodepoolsReport struct {
	Nodes []nodegpu.GPUs `json:"nodes"`
	Pools []pools.Pool   `json:"pools"`
	// Notes say what could not be read and is therefore left open.
	Notes []string `json:"notes"`
}
