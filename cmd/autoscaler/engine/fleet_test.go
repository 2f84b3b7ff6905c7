package engine

import (
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func decided() *addon.Decision {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return &addon.Decision{
		Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, At: at, Took: 3 * time.Millisecond, Read: addon.ReadAt(at.Add(-2 * time.Second)),
		Mode: nodepool.Managed, Why: planner.Reason{Message: "managed by the default"}, RayErr: "the head does not answer",
		Kube: nodepool.Cluster{Freeze: true, RequestResources: []raydemand.Request{{Count: 3}}},
		Plan: planner.Plan{
			Groups:                 []planner.GroupPlan{{Name: "gpu", Current: 1, Desired: 2, Max: 4}},
			InfeasibleRequests:     []planner.UnmetRequest{{Request: raydemand.Request{Count: 5}, Reason: planner.Reason{Code: planner.Capped}}},
			InfeasibleGangRequests: []planner.UnmetGang{{Reason: planner.Reason{Code: planner.Capped}}},
		},
		Paused: "Ray's state cannot be read",
		Recent: []addon.Action{
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 2, Message: "demand"},
			{At: at, Kind: addon.ActionDrain, Result: addon.ResultRefused, Group: "gpu", Pods: []string{"a"}},
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 2, To: 1, Pods: []string{"a"}},
			{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 1, Pods: []string{"b"}},
		},
	}
}
