package kube

import (
	"errors"
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
	end := func(action nodepool.IdleAction, want error) {
		t.Helper()
		s.until(string(action)+" without a write of the operator in between", func() bool {
			fresh, err := m.Fresh(t.Context(), s.key("llm"))
			if err != nil {
				t.Fatal(err)
			}
			err = m.EndIdle(t.Context(), nodepool.IdleChange{Cluster: fresh.Key, UID: fresh.UID, Since: since, Action: action,
				ResourceVersion: fresh.ResourceVersion, Generation: fresh.Generation})
			if errors.Is(err, nodepool.ErrConflict) {
				return false
			}
			if !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", action, err, want)
			}
			return true
		})
	}
	end(nodepool.SuspendIdle, nil)
	s.until("the RayCluster to be suspended, since then", func() bool {
		seen := s.read(m, "llm")
		return seen.Suspended && seen.IdleSince.Equal(since)
	})
	end(nodepool.ResumeIdle, nil)
	s.until("the RayCluster to be resumed", func() bool {
		seen := s.read(m, "llm")
		return !seen.Suspended && seen.IdleSince.IsZero()
	})

	// What a user has suspended is the user's.
	s.patch("llm", types.MergePatchType, `{"spec":{"suspend":true}}`)
	s.until("the RayCluster to be suspended by a user", func() bool { return s.read(m, "llm").Suspended })
	end(nodepool.ResumeIdle, nodepool.ErrReadOnly)
}
