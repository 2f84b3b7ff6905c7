package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// SyncNumGPUs writes numbers of GPUs into the spec with one guarded JSON patch, all targets or none, and returns the
// RayCluster's new generation. It reads the object from the API server, because the caches drop managedFields. A
// *nodepool.SyncRefusal says why they must not be written; the other errors are those of Apply.
func (m *Manager) SyncNumGPUs(ctx context.Context, change nodepool.NumGPUsChange) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	object, err := m.getRayCluster(ctx, m.rayClusters, change.Cluster)
	if err != nil {
		return 0, err
	}
	m.newestSeen.remember(object)
	cluster := decode.DecodeObject(object).Cluster
	if err := m.writable(ctx, object, time.Time{}); err != nil {
		return 0, err
	}
	if refusal := refuseSync(object.Object, &cluster, change); refusal != nil {
		return 0, refusal
	}
	written, err := m.writeAsOwner(ctx, "writing num-gpus to", object,
		func(object map[string]any, term string) ([]byte, error) {
			change.Term = term
			return numGPUsPatch(object, change)
		})
	if err != nil {
		return 0, err
	}
	return written.GetGeneration(), nil
}

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
	metadata := decode.FieldsOf(object, nil).Object("metadata")
	if manager := decode.AppliedBy(metadata); manager != "" {
		return &nodepool.SyncRefusal{Code: nodepool.SyncFieldManaged,
			Why: "the worker groups are applied by " + manager + ", which would overwrite it: set the number there"}
	}
	return nil
}

// numGPUsPatch writes numbers of GPUs as one JSON patch on the RayCluster that was just read. In addition to the guards
// of every patch it tests the version of the object, because the spec, ownerReferences and managedFields can all forbid
// the write. It is rare, so a conflict with a status update of the operator costs only a retry.
//
//	test    /metadata/uid, /metadata/deletionTimestamp, the annotations freeze and mode, /spec/suspend
//	test    the label kueue.x-k8s.io/queue-name, /metadata/ownerReferences
//	test    /metadata/resourceVersion, /metadata/generation
//	test    /spec/upgradeStrategy
//	test    /spec/workerGroupSpecs/i/groupName, /rayStartParams and /resources          for each target
//	test    and add the annotation shard                                               if RayClusters are divided
//	add     /spec/workerGroupSpecs/i/rayStartParams/num-gpus or /resources/GPU
func numGPUsPatch(object map[string]any, change nodepool.NumGPUsChange) ([]byte, error) {
	root, err := sameRayCluster(object, change.UID)
	if err != nil {
		return nil, err
	}
	metadata, spec := root.Object("metadata"), root.Object("spec")
	if stored := metadata.Int64("generation"); stored != change.Generation {
		return nil, fmt.Errorf("%w: generation is %d, the numbers were chosen from %d", nodepool.ErrConflict, stored,
			change.Generation)
	}
	patch := append(append(guards(root), fence(root, change.Term)...),
		operation{"test", "/metadata/resourceVersion", metadata.Get("resourceVersion").Raw()},
		operation{"test", "/metadata/generation", change.Generation},
		operation{"test", "/spec/upgradeStrategy", spec.Get("upgradeStrategy").Raw()})
	groups := spec.Objects("workerGroupSpecs")
	var writes []operation
	for _, target := range change.Targets {
		group, path, err := groupOf(groups, target.Index, target.Group)
		if err != nil {
			return nil, err
		}
		if field := decode.GPUField(group.Texts("resources")); field != target.Field {
			return nil, fmt.Errorf("%w: the number of group %s belongs in %s now", nodepool.ErrConflict, target.Group,
				field)
		}
		patch = append(patch,
			operation{"test", path + "/groupName", target.Group},
			operation{"test", path + "/rayStartParams", group.Get("rayStartParams").Raw()},
			operation{"test", path + "/resources", group.Get("resources").Raw()})
		writes = append(writes, numGPUsWrite(group, path, target))
	}
	writes = append(writes, annotationSteps(metadata, map[string]string{decode.ShardAnnotation: change.Term})...)
	return json.Marshal(append(patch, writes...))
}

// numGPUsWrite adds the number, and the map around it if that is absent. All values of both maps are strings.
func numGPUsWrite(group decode.Fields, path string, target nodepool.NumGPUsTarget) operation {
	section, key, _ := strings.Cut(target.Field, ".")
	if !group.Has(section) {
		return operation{"add", path + "/" + section, map[string]any{key: target.GPUs.String()}}
	}
	return operation{"add", path + "/" + section + "/" + escape(key), target.GPUs.String()}
}
