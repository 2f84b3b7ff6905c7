package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// operation is one step of an RFC 6902 JSON patch. Value is always written, because a test for null tests absence.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// scalePatch writes a change as one JSON patch on the RayCluster that was read. The tests come first, so that nothing
// is written to a cluster that was meanwhile recreated under its name, frozen, given another mode, suspended, queued by
// Kueue, adopted by an owner or marked for deletion; to a group that moved to another index; over another writer's
// replicas; or beyond bounds that changed. The API server rejects the whole patch with 422 if one test fails.
//
// Pods are named only in the very spec that they were chosen from: what they are depends on numOfHosts, on the names
// that others wrote, and more. The patch tests the generation, which changes only with the spec; resourceVersion would
// conflict with each status update of the operator, and those are most frequent while pods come and go. Annotations
// have their own tests. A RayCluster that Kueue queues is changed only in the spec that was read, too: whether replicas
// may change depends on the gates in all of its templates.
//
//	test    /metadata/uid, /metadata/deletionTimestamp, the annotations freeze and mode, /spec/suspend
//	test    the label kueue.x-k8s.io/queue-name, /metadata/ownerReferences
//	test    the annotation shard                                  if RayClusters are divided among shards
//	test    /metadata/generation                                  if pods are named, or Kueue queues it
//	test    /spec/workerGroupSpecs/i/groupName, /replicas, /minReplicas and /maxReplicas      for each target
//	add     /spec/workerGroupSpecs/i/replicas                     (which replaces one that is there)
//	add     /spec/workerGroupSpecs/i/scaleStrategy/workersToDelete, which leaves the gates of others beside it
//	add     the annotation shard                                  if there is something to store
func scalePatch(object map[string]any, change nodepool.Change) ([]byte, error) {
	root, err := sameRayCluster(object, change.UID)
	if err != nil {
		return nil, err
	}
	patch := append(guards(root), fence(root, change.Term)...)
	if namesPods(change) || root.Object("metadata").Texts("labels")[nodepool.QueueLabel] != "" {
		if stored := root.Object("metadata").Int64("generation"); stored != change.Generation {
			return nil, fmt.Errorf("%w: generation is %d, the pods were chosen from %d", nodepool.ErrConflict, stored,
				change.Generation)
		}
		patch = append(patch, operation{"test", "/metadata/generation", change.Generation})
	}
	groups := root.Object("spec").Objects("workerGroupSpecs")
	var writes []operation
	for _, target := range change.Targets {
		group, path, err := groupOf(groups, target.Index, target.Group)
		if err != nil {
			return nil, err
		}
		if stored := group.Int32("replicas", 0); stored != target.From {
			return nil, fmt.Errorf("%w: group %s has %d replicas, had %d", nodepool.ErrConflict, target.Group, stored,
				target.From)
		}
		patch = append(patch,
			operation{"test", path + "/groupName", target.Group},
			operation{"test", path + "/replicas", group.Get("replicas").Raw()},
			operation{"test", path + "/minReplicas", group.Get("minReplicas").Raw()},
			operation{"test", path + "/maxReplicas", group.Get("maxReplicas").Raw()})
		writes = append(writes, operation{"add", path + "/replicas", target.Replicas})
		switch {
		case target.WorkersToDelete == nil:
		case group.Has("scaleStrategy"):
			writes = append(writes, operation{"add", path + "/scaleStrategy/workersToDelete", target.WorkersToDelete})
		default:
			writes = append(writes, operation{"add", path + "/scaleStrategy",
				map[string]any{"workersToDelete": target.WorkersToDelete}})
		}
	}
	writes = append(writes, annotationSteps(root.Object("metadata"), map[string]string{
		decode.ShardAnnotation: change.Term})...)
	return json.Marshal(append(patch, writes...))
}

// sameRayCluster returns the fields of an object, or nodepool.ErrConflict if it is not the one with this uid.
func sameRayCluster(object map[string]any, uid string) (decode.Fields, error) {
	root := decode.FieldsOf(object, nil)
	if stored := root.Object("metadata").Text("uid"); stored != uid {
		return root, fmt.Errorf("%w: uid is %s, was %s", nodepool.ErrConflict, stored, uid)
	}
	return root, nil
}

// groupOf returns the worker group at an index, and its path; nodepool.ErrConflict if another group is there.
func groupOf(groups []decode.Fields, index int, name string) (group decode.Fields, path string, err error) {
	if index < 0 || index >= len(groups) || groups[index].Text("groupName") != name {
		return group, "", fmt.Errorf("%w: group %s is not at index %d", nodepool.ErrConflict, name, index)
	}
	return groups[index], fmt.Sprintf("/spec/workerGroupSpecs/%d", index), nil
}

// fence tests that no other shard has written to the RayCluster since it was read.
func fence(root decode.Fields, term string) []operation {
	metadata := root.Object("metadata")
	if term == "" || !metadata.Has("annotations") { // then guards test that there are none
		return nil
	}
	stored := metadata.Object("annotations").Get(decode.ShardAnnotation).Raw()
	return []operation{{"test", "/metadata/annotations/" + escape(decode.ShardAnnotation), stored}}
}

// annotationSteps returns the steps of a patch that store annotations. Empty values are left out.
func annotationSteps(metadata decode.Fields, values map[string]string) []operation {
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	if len(values) > 0 && !metadata.Has("annotations") {
		return []operation{{"add", "/metadata/annotations", values}}
	}
	var steps []operation
	for _, key := range slices.Sorted(maps.Keys(values)) {
		steps = append(steps, operation{"add", "/metadata/annotations/" + escape(key), values[key]})
	}
	return steps
}

func namesPods(change nodepool.Change) bool {
	return slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return len(t.WorkersToDelete) > 0 })
}

// guards test that the RayCluster is the one that was read and has not been stopped since.
func guards(root decode.Fields) []operation {
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
	for _, key := range []string{decode.FreezeAnnotation, decode.ModeAnnotation} {
		tests = append(tests, operation{"test", "/metadata/annotations/" + escape(key), annotations.Get(key).Raw()})
	}
	return tests
}

// escape writes a key as a JSON pointer token.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// queueGuards test that the RayCluster has not been queued since, by its own label or by an owner that adopts it.
func queueGuards(metadata decode.Fields) []operation {
	owners := operation{"test", "/metadata/ownerReferences", metadata.Get("ownerReferences").Raw()}
	if !metadata.Has("labels") {
		// A patch cannot test a path below an absent map.
		return []operation{{"test", "/metadata/labels", nil}, owners}
	}
	label := metadata.Object("labels").Get(nodepool.QueueLabel).Raw()
	return []operation{{"test", "/metadata/labels/" + escape(nodepool.QueueLabel), label}, owners}
}
