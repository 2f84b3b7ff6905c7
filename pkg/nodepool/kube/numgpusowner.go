package kube

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
)

// refuseSync returns why the current object forbids the change, or nil.
func refuseSync(object map[string]any, cluster *nodepool.Cluster, change nodepool.NumGPUsChange) *nodepool.SyncRefusal {
	for _, target := range change.Targets {
		group, there := cluster.Group(target.Group)
		if !there {
			continue // a conflict
		}
		if refusal := cluster.SyncRefusal(group); refusal != nil {
			return refusal
		}
	}
	metadata := rayobject.FieldsOf(object, nil).Object("metadata")
	if manager := rayobject.AppliedBy(metadata); manager != "" {
		return &nodepool.SyncRefusal{Code: nodepool.SyncFieldManaged,
			Why: "the worker groups are applied by " + manager + ", which would overwrite it: set the number there"}
	}
	return nil
}
