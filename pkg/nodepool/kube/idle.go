package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// EndIdle suspends or resumes a RayCluster, in exactly the version in which it was read: a user may have begun to use
// it or changed it since. nodepool.ErrConflict says so. The other errors are those of Apply.
func (m *Manager) EndIdle(ctx context.Context, change nodepool.IdleChange) error {
	object, err := m.newest(change.Cluster)
	if err != nil {
		return err
	}
	doing := "suspend"
	if change.Resume {
		doing = "resume"
	}
	if string(object.GetUID()) != change.UID || object.GetResourceVersion() != change.ResourceVersion ||
		object.GetGeneration() != change.Generation {
		return fmt.Errorf("%s %s: it has changed: %w", doing, change.Cluster, nodepool.ErrConflict)
	}
	from := m.decodes.decode(object)
	awake := from.Cluster
	awake.Suspended = false // that it is suspended is no reason against it
	if err := m.mayWriteTo(ctx, awake, from.Ownership, time.Time{}); err != nil {
		return err
	}
	_, err = m.writeAsOwner(ctx, doing, object,
		func(object map[string]any, term string) ([]byte, error) { return idlePatch(object, change, term) })
	return err
}

// idlePatch writes spec.suspend, and since when the RayCluster has had no work, as one guarded JSON patch.
//
//	test    what scalePatch tests, /metadata/generation, and /metadata/resourceVersion before it is suspended
//	add     /spec/suspend
//	add     the annotation idle-since, or remove it
func idlePatch(object map[string]any, change nodepool.IdleChange, term string) ([]byte, error) {
	root := decode.FieldsOf(object, nil)
	metadata, spec := root.Object("metadata"), root.Object("spec")
	annotations := metadata.Object("annotations")
	patch := append(guards(root), fence(root, term)...)
	patch = append(patch, operation{"test", "/metadata/generation", change.Generation})
	at := "/metadata/annotations/" + escape(nodepool.IdleSinceAnnotation)
	if change.Resume {
		if !spec.Flag("suspend") || !annotations.Has(nodepool.IdleSinceAnnotation) {
			return nil, fmt.Errorf("%w: Heliostat has not suspended it", nodepool.ErrReadOnly)
		}
		patch = append(patch, operation{"test", at, annotations.Get(nodepool.IdleSinceAnnotation).Raw()},
			operation{"replace", "/spec/suspend", false}, operation{Op: "remove", Path: at})
		return json.Marshal(append(patch, annotationSteps(metadata, map[string]string{
			decode.ShardAnnotation: term,
		})...))
	}
	patch = append(patch, operation{"test", "/metadata/resourceVersion", change.ResourceVersion},
		operation{"add", "/spec/suspend", true})
	return json.Marshal(append(patch, annotationSteps(metadata, map[string]string{
		nodepool.IdleSinceAnnotation: decode.IdleSinceText(change.Since, change.Generation+1),
		decode.ShardAnnotation:       term,
	})...))
}
