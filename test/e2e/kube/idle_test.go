package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/rig"
)

// TestARayClusterIsSuspendedAndResumed writes as the loop does when a RayCluster has had no work, and when something
// wants it again.
func TestARayClusterIsSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	s := stage(t, "idle")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	end := func(action nodepool.IdleAction) {
		t.Helper()
		fresh, err := m.Fresh(t.Context(), s.key("llm"))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.EndIdle(t.Context(), nodepool.IdleChange{Cluster: fresh.Key, UID: fresh.UID, Since: since, Action: action,
			ResourceVersion: fresh.ResourceVersion, Generation: fresh.Generation}); err != nil {
			t.Fatalf("%s: %v", action, err)
		}
	}
	end(nodepool.SuspendIdle)
	s.until("the RayCluster to be suspended, since then", func() bool {
		seen := s.read(m, "llm")
		return seen.Suspended && seen.IdleSince.Equal(since)
	})
	end(nodepool.ResumeIdle)
	s.until("the RayCluster to be resumed", func() bool {
		seen := s.read(m, "llm")
		return !seen.Suspended && seen.IdleSince.IsZero()
	})

	// What a user has suspended is the user's.
	s.patch("llm", types.MergePatchType, `{"spec":{"suspend":true}}`)
	s.until("the RayCluster to be suspended by a user", func() bool { return s.read(m, "llm").Suspended })
	seen := s.read(m, "llm")
	if err := m.EndIdle(t.Context(), nodepool.IdleChange{Cluster: seen.Key, UID: seen.UID, Action: nodepool.ResumeIdle,
		ResourceVersion: seen.ResourceVersion, Generation: seen.Generation}); err == nil {
		t.Error("resumed although a user has suspended it")
	}
}
