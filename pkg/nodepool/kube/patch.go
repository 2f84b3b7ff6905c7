package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
)

// operation is one step of an RFC 6902 JSON patch. Value is always written, because a test for null tests absence.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patchFor writes a change as one JSON patch on the RayCluster that was read. The tests come first, so that nothing is
// written to a cluster that was meanwhile recreated under its name, frozen, given another mode, suspended, queued by
// Kueue, adopted by an owner or marked for deletion; to a group that moved to another index; over another writer's
// replicas; or beyond bounds that changed. The API server rejects the whole patch with 422 if one test fails.
//
// Pods are named only in the very spec that they were chosen from: what they are depends on numOfHosts, on the names
// that others wrote, and more. The patch tests the generation, which changes only with the spec; resourceVersion would
// conflict with each status update of the operator, and those are most frequent while pods come and go. Annotations
// have their own tests.
//
//	test    /metadata/uid, /metadata/deletionTimestamp, the annotations freeze and mode, /spec/suspend
//	test    the label kueue.x-k8s.io/queue-name, /metadata/ownerReferences
//	test    /metadata/generation                                  if pods are named
//	test    /spec/workerGroupSpecs/i/groupName, /replicas, /minReplicas and /maxReplicas      for each target
//	replace /spec/workerGroupSpecs/i/replicas                     (add if it was absent)
//	replace /spec/workerGroupSpecs/i/scaleStrategy                (add if it was absent)
//	add     the annotation scale-up-trace                         if there is a trace
func patchFor(object map[string]any, change nodepool.Change) ([]byte, error) {
	report := &finding.List{}
	root := rayobject.FieldsOf(object, report)
	if uid := root.Object("metadata").Text("uid"); uid != change.UID {
		return nil, fmt.Errorf("%w: uid is %s, was %s", nodepool.ErrConflict, uid, change.UID)
	}
	patch := guards(root)
	if namesPods(change) {
		if stored := root.Object("metadata").Int64("generation"); stored != change.Generation {
			return nil, fmt.Errorf(
				"%w: generation is %d, the pods were chosen from %d",
				nodepool.ErrConflict,
				stored,
				change.Generation,
			)
		}
		patch = append(patch, operation{"test", "/metadata/generation", change.Generation})
	}
	groups := root.Object("spec").Objects("workerGroupSpecs")
	var writes []operation
	for _, target := range change.Targets {
		if target.Index < 0 || target.Index >= len(groups) || groups[target.Index].Text("groupName") != target.Group {
			return nil, fmt.Errorf("%w: group %s is not at index %d", nodepool.ErrConflict, target.Group, target.Index)
		}
		group := groups[target.Index]
		if stored := group.Int32("replicas", 0); stored != target.From {
			return nil, fmt.Errorf(
				"%w: group %s has %d replicas, had %d",
				nodepool.ErrConflict,
				target.Group,
				stored,
				target.From,
			)
		}
		path := fmt.Sprintf("/spec/workerGroupSpecs/%d", target.Index)
		patch = append(patch,
			operation{"test", path + "/groupName", target.Group},
			operation{"test", path + "/replicas", group.Get("replicas").Raw()},
			operation{"test", path + "/minReplicas", group.Get("minReplicas").Raw()},
			operation{"test", path + "/maxReplicas", group.Get("maxReplicas").Raw()})
		writes = append(writes, operation{addOrReplace(group, "replicas"), path + "/replicas", target.Replicas})
		if target.WorkersToDelete != nil {
			writes = append(writes, operation{addOrReplace(group, "scaleStrategy"), path + "/scaleStrategy",
				map[string]any{"workersToDelete": target.WorkersToDelete}})
		}
	}
	if change.ScaleUpTrace != "" {
		writes = append(writes, scaleUpTraceStep(root.Object("metadata"), change.ScaleUpTrace))
	}
	text, err := json.Marshal(append(patch, writes...))
	if err != nil {
		return nil, fmt.Errorf("writing patch of %s: %w", change.Cluster, err)
	}
	return text, nil
}

func namesPods(change nodepool.Change) bool {
	return slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return len(t.WorkersToDelete) > 0 })
}

// guards test that the RayCluster is the one that was read and has not been stopped since.
func guards(root rayobject.Fields) []operation {
	metadata := root.Object("metadata")
	tests := []operation{
		{"test", "/metadata/uid", metadata.Get("uid").Raw()},
		{"test", "/metadata/deletionTimestamp", metadata.Get("deletionTimestamp").Raw()},
		{"test", "/spec/suspend", root.Object("spec").Get("suspend").Raw()},
	}
	tests = append(tests, queueGuards(metadata)...)
	annotations := metadata.Object("annotations")
	if !metadata.Has("annotations") {
		// A patch cannot test a path below an absent map.
		return append(tests, operation{"test", "/metadata/annotations", nil})
	}
	for _, key := range []string{rayobject.FreezeAnnotation, rayobject.ModeAnnotation} {
		tests = append(tests, operation{"test", "/metadata/annotations/" + escape(key), annotations.Get(key).Raw()})
	}
	return tests
}

// addOrReplace returns add for an absent field and replace for a present one: the API server rejects replace below an
// absent parent (k5).
func addOrReplace(f rayobject.Fields, name string) string {
	if f.Has(name) {
		return "replace"
	}
	return "add"
}

// escape writes a key as a JSON pointer token.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// queueGuards test that the RayCluster has not been queued since, by its own label or by an owner that adopts it.
func queueGuards(metadata rayobject.Fields) []operation {
	owners := operation{"test", "/metadata/ownerReferences", metadata.Get("ownerReferences").Raw()}
	if !metadata.Has("labels") {
		// A patch cannot test a path below an absent map.
		return []operation{{"test", "/metadata/labels", nil}, owners}
	}
	label := metadata.Object("labels").Get(nodepool.QueueLabel).Raw()
	return []operation{{"test", "/metadata/labels/" + escape(nodepool.QueueLabel), label}, owners}
}
