package kube

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func idleObject(annotations map[string]any, suspend any) map[string]any {
	object := map[string]any{
		"metadata": map[string]any{"name": "llm", "namespace": "ml", "uid": "u", "resourceVersion": "7", "generation": int64(3)},
		"spec":     map[string]any{"headGroupSpec": map[string]any{}},
	}
	if annotations != nil {
		object["metadata"].(map[string]any)["annotations"] = annotations
	}
	if suspend != nil {
		object["spec"].(map[string]any)["suspend"] = suspend
	}
	return object
}

var idleChange = nodepool.IdleChange{UID: "u", ResourceVersion: "7", Generation: 3,
	Since: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}

// patched applies the patch for one object to another.
func patched(t *testing.T, read, stored map[string]any, change nodepool.IdleChange) (map[string]any, error) {
	t.Helper()
	patch, err := idlePatch(read, change, "")
	if err != nil {
		return nil, err
	}
	steps, err := jsonpatch.DecodePatch(patch)
	must(t, err)
	text, err := json.Marshal(stored)
	must(t, err)
	if text, err = steps.Apply(text); err != nil {
		return nil, err
	}
	var after map[string]any
	return after, json.Unmarshal(text, &after)
}

func TestSuspendingAndResuming(t *testing.T) {
	for _, annotations := range []map[string]any{nil, {"a": "b"}} {
		for _, suspend := range []any{nil, false} {
			after, err := patched(t, idleObject(annotations, suspend), idleObject(annotations, suspend), idleChange)
			must(t, err)
			noted := after["metadata"].(map[string]any)["annotations"].(map[string]any)
			if after["spec"].(map[string]any)["suspend"] != true || noted[nodepool.IdleSinceAnnotation] != "2026-03-01T10:00:00Z 4" {
				t.Errorf("suspended: %v", after)
			}
			resume := idleChange
			resume.Resume = true
			suspended := idleObject(noted, true)
			after, err = patched(t, suspended, suspended, resume)
			must(t, err)
			left := after["metadata"].(map[string]any)["annotations"].(map[string]any)
			if after["spec"].(map[string]any)["suspend"] != false || left[nodepool.IdleSinceAnnotation] != nil {
				t.Errorf("resumed: %v", after)
			}
		}
	}
}

func TestARayClusterThatHasChangedIsNotSuspended(t *testing.T) {
	read := idleObject(map[string]any{"a": "b"}, nil)
	for name, change := range map[string]func(metadata, spec map[string]any){
		"another object":          func(m, _ map[string]any) { m["uid"] = "v" },
		"a newer version":         func(m, _ map[string]any) { m["resourceVersion"] = "8" },
		"a newer generation":      func(m, _ map[string]any) { m["generation"] = int64(4) },
		"it is frozen":            func(m, _ map[string]any) { m["annotations"] = map[string]any{"a": "b", "heliostat.dev/freeze": "true"} },
		"it is in shadow":         func(m, _ map[string]any) { m["annotations"] = map[string]any{"a": "b", "heliostat.dev/mode": "shadow"} },
		"it is suspended already": func(_, s map[string]any) { s["suspend"] = true },
		"it has an owner":         func(m, _ map[string]any) { m["ownerReferences"] = []any{map[string]any{"kind": "RayJob"}} },
		"it is queued":            func(m, _ map[string]any) { m["labels"] = map[string]any{nodepool.QueueLabel: "q"} },
		"it is being deleted":     func(m, _ map[string]any) { m["deletionTimestamp"] = "2026-03-01T10:00:00Z" },
	} {
		stored := idleObject(map[string]any{"a": "b"}, nil)
		metadata, spec := maps.Clone(stored["metadata"].(map[string]any)), maps.Clone(stored["spec"].(map[string]any))
		change(metadata, spec)
		stored["metadata"], stored["spec"] = metadata, spec
		if after, err := patched(t, read, stored, idleChange); err == nil {
			t.Errorf("%s: it is suspended: %v", name, after)
		}
	}
}

func TestWhatAUserSuspendedStaysSuspended(t *testing.T) {
	resume := idleChange
	resume.Resume = true
	for name, object := range map[string]map[string]any{
		"suspended by a user": idleObject(map[string]any{"a": "b"}, true),
		"not suspended":       idleObject(map[string]any{nodepool.IdleSinceAnnotation: "2026-03-01T10:00:00Z"}, nil),
	} {
		if _, err := idlePatch(object, resume, ""); !errors.Is(err, nodepool.ErrReadOnly) {
			t.Errorf("%s: %v, want read-only", name, err)
		}
	}
}
