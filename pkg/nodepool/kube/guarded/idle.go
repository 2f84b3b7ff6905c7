package guarded

import (
	"encoding/json"
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
)

// Idle writes spec.suspend, and since when the RayCluster has had no work, as one guarded JSON patch.
//
//	test    what Scale tests, /metadata/generation, and /metadata/resourceVersion before it is suspended
//	add     /spec/suspend
//	add     the annotation idle-since, or remove it
func Idle(object map[string]any, change nodepool.IdleChange, term string) ([]byte, error) {
	root := rayobject.FieldsOf(object, &finding.List{})
	metadata, spec := root.Object("metadata"), root.Object("spec")
	annotations := metadata.Object("annotations")
	patch := append(guards(root), fence(root, term)...)
	patch = append(patch, Operation{"test", "/metadata/generation", change.Generation})
	at := "/metadata/annotations/" + escape(nodepool.IdleSinceAnnotation)
	if change.Action == nodepool.ResumeIdle {
		if !spec.Flag("suspend") || !annotations.Has(nodepool.IdleSinceAnnotation) {
			return nil, fmt.Errorf("%w: Heliostat has not suspended it", nodepool.ErrReadOnly)
		}
		patch = append(patch, Operation{"test", at, annotations.Get(nodepool.IdleSinceAnnotation).Raw()},
			Operation{"replace", "/spec/suspend", false}, Operation{Op: "remove", Path: at})
		return json.Marshal(append(patch, annotationSteps(metadata, map[string]string{
			rayobject.ShardAnnotation: term,
		})...))
	}
	patch = append(patch, Operation{"test", "/metadata/resourceVersion", change.ResourceVersion},
		Operation{addOrReplace(spec, "suspend"), "/spec/suspend", true})
	return json.Marshal(append(patch, annotationSteps(metadata, map[string]string{
		nodepool.IdleSinceAnnotation: rayobject.IdleSinceText(change.Since, change.Generation+1),
		rayobject.ShardAnnotation:    term,
	})...))
}
