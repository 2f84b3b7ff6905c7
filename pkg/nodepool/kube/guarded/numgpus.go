package guarded

import (
	"encoding/json"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
)

// NumGPUs writes numbers of GPUs as one JSON patch on the RayCluster that was just read. In addition to the guards
// of every patch it tests the version of the object, because the spec, ownerReferences and managedFields can all forbid
// the write. It is rare, so a conflict with a status update of the operator costs only a retry.
//
//	test    /metadata/uid, /metadata/deletionTimestamp, the annotations freeze and mode, /spec/suspend
//	test    the label kueue.x-k8s.io/queue-name, /metadata/ownerReferences
//	test    /metadata/resourceVersion, /metadata/generation
//	test    /spec/upgradeStrategy
//	test    /spec/workerGroupSpecs/i/groupName, /rayStartParams and /resources          for each target
//	test    and add the annotation shard                                               if RayClusters are divided
//	add     /spec/workerGroupSpecs/i/rayStartParams/num-gpus or /resources/GPU          (replace if it was present)
func NumGPUs(object map[string]any, change nodepool.NumGPUsChange) ([]byte, error) {
	report := &finding.List{}
	root := rayobject.FieldsOf(object, report)
	metadata, spec := root.Object("metadata"), root.Object("spec")
	if uid := metadata.Text("uid"); uid != change.UID {
		return nil, fmt.Errorf("%w: uid is %s, was %s", nodepool.ErrConflict, uid, change.UID)
	}
	if stored := metadata.Int64("generation"); stored != change.Generation {
		return nil, fmt.Errorf(
			"%w: generation is %d, the numbers were chosen from %d",
			nodepool.ErrConflict,
			stored,
			change.Generation,
		)
	}
	patch := append(append(guards(root), fence(root, change.Term)...),
		Operation{"test", "/metadata/resourceVersion", metadata.Get("resourceVersion").Raw()},
		Operation{"test", "/metadata/generation", change.Generation},
		Operation{"test", "/spec/upgradeStrategy", spec.Get("upgradeStrategy").Raw()})
	groups := spec.Objects("workerGroupSpecs")
	var writes []Operation
	for _, target := range change.Targets {
		if target.Index < 0 || target.Index >= len(groups) || groups[target.Index].Text("groupName") != target.Group {
			return nil, fmt.Errorf("%w: group %s is not at index %d", nodepool.ErrConflict, target.Group, target.Index)
		}
		group, path := groups[target.Index], fmt.Sprintf("/spec/workerGroupSpecs/%d", target.Index)
		if field := rayobject.GPUField(group.Texts("resources")); field != target.Field {
			return nil, fmt.Errorf(
				"%w: the number of group %s belongs in %s now",
				nodepool.ErrConflict,
				target.Group,
				field,
			)
		}
		patch = append(patch,
			Operation{"test", path + "/groupName", target.Group},
			Operation{"test", path + "/rayStartParams", group.Get("rayStartParams").Raw()},
			Operation{"test", path + "/resources", group.Get("resources").Raw()})
		writes = append(writes, numGPUsWrite(group, path, target))
	}
	writes = append(writes, annotationSteps(metadata, map[string]string{rayobject.ShardAnnotation: change.Term})...)
	text, err := json.Marshal(append(patch, writes...))
	if err != nil {
		return nil, fmt.Errorf("writing patch of %s: %w", change.Cluster, err)
	}
	return text, nil
}

// numGPUsWrite adds the number, and the map around it if that is absent. All values of both maps are strings.
func numGPUsWrite(group rayobject.Fields, path string, target nodepool.NumGPUsTarget) Operation {
	section, key, _ := strings.Cut(target.Field, ".")
	if !group.Has(section) {
		return Operation{"add", path + "/" + section, map[string]any{key: target.GPUs.String()}}
	}
	return Operation{
		addOrReplace(group.Object(section), key),
		path + "/" + section + "/" + escape(key),
		target.GPUs.String(),
	}
}
