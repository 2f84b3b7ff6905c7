package manifests

import (
	"bytes"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// poolsWithoutNodes finds pools that no node belongs to and that have no shape, usually because of a misspelled name.
func poolsWithoutNodes(config landing.Config, nodes []landing.Node) (list []raydemand.Finding) {
	for i, spec := range config.Pools {
		if spec.Shape == nil && len(nodes) > 0 &&
			!slices.ContainsFunc(nodes, func(n landing.Node) bool { return n.Pool == spec.Name }) {
			list = append(list, raydemand.Finding{Code: planner.FindingPoolWithoutNodes, Severity: raydemand.Warning,
				Object: "snapshot", Field: fmt.Sprintf("pools[%d].name", i), Seen: spec.Name,
				Why: "the pool has no nodes and no shape, so its limits apply to no group, and nodes that it may " +
					"add are unknown",
				Fix: "use the pool's name in the labels of the nodes, or add a shape"})
		}
	}
	return list
}

// poolsIn reads the description of pools, in the format of the file of --pools: the whole file, or its list of pools
// with complete beside it.
func poolsIn(doc snapshotfile.Document) (landing.Config, error) {
	if doc.Pools == nil {
		return landing.Config{Complete: doc.PoolsComplete}, nil
	}
	text := doc.Pools
	if !bytes.HasPrefix(text, []byte("{")) {
		text = slices.Concat([]byte(`{"pools": `), text, []byte("}"))
	}
	config, err := decode.ReadPools(bytes.NewReader(text))
	config.Complete = config.Complete || doc.PoolsComplete
	return config, err
}
