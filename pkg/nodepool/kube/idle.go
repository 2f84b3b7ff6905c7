package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// EndIdle suspends, resumes or deletes a RayCluster, in exactly the version in which it was read: a user may have begun
// to use it or changed it since. nodepool.ErrConflict says so. The other errors are those of Apply.
func (m *Manager) EndIdle(ctx context.Context, change nodepool.IdleChange) error {
	object, err := m.newest(change.Cluster)
	if err != nil {
		return err
	}
	if string(object.GetUID()) != change.UID || object.GetResourceVersion() != change.ResourceVersion ||
		object.GetGeneration() != change.Generation {
		return fmt.Errorf("%s %s: it has changed: %w", change.Action, change.Cluster, nodepool.ErrConflict)
	}
	if err := m.mayEndIdle(ctx, object); err != nil {
		return err
	}
	if change.Action == nodepool.DeleteIdle {
		return m.deleteIdle(ctx, change)
	}
	_, err = m.writeAsOwner(ctx, string(change.Action), object,
		func(object map[string]any, term string) ([]byte, error) { return idlePatch(object, change, term) })
	return err
}

// mayEndIdle returns why a RayCluster must not be suspended, resumed or deleted. That it is suspended is no reason.
func (m *Manager) mayEndIdle(ctx context.Context, object *unstructured.Unstructured) error {
	from := m.decodes.decode(object)
	awake := from.Cluster
	awake.Suspended = false
	return m.mayWriteTo(ctx, awake, from.Ownership, time.Time{})
}

// deleteIdle deletes the version that was read.
func (m *Manager) deleteIdle(ctx context.Context, change nodepool.IdleChange) error {
	if err := m.mayWriteNow(change.Cluster); err != nil {
		return fmt.Errorf("deleting %s: %w", change.Cluster, err)
	}
	ctx, cancel := m.whileHeld(ctx, change.Cluster)
	defer cancel()
	if err := m.unrequested(ctx, change.Cluster); err != nil {
		return fmt.Errorf("deleting %s: %w", change.Cluster, err)
	}
	uid, version, background := types.UID(change.UID), change.ResourceVersion, metav1.DeletePropagationBackground
	err := m.rayClusters.Namespace(change.Cluster.Namespace).Delete(ctx, change.Cluster.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	if err != nil {
		return fmt.Errorf("deleting %s: %w", change.Cluster, classified(err))
	}
	return nil
}

// unrequested lists ResourceRequests, because one that a watch has not shown yet changes nothing in the RayCluster. One
// for the RayCluster is a conflict, also if it has expired. It reads page by page: there may be many.
func (m *Manager) unrequested(ctx context.Context, key nodepool.ClusterKey) error {
	err := eachObject(ctx, m.requestObjects.Namespace(key.Namespace), func(object map[string]any) error {
		if of, _, _ := unstructured.NestedString(object, "spec", "rayCluster"); of == key.Name {
			name, _, _ := unstructured.NestedString(object, "metadata", "name")
			return fmt.Errorf("ResourceRequest %s is for it: %w", name, nodepool.ErrConflict)
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil // the API server does not serve them
	case err != nil && !isConflict(err):
		return fmt.Errorf("listing ResourceRequests: %w", err)
	}
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
	if change.Action == nodepool.ResumeIdle {
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
