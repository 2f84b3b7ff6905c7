package page

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fleet is the data that the server returns in a test.
type fleet struct {
	mu    sync.Mutex
	views map[nodepool.ClusterKey]api.View
}

func (f *fleet) set(views ...api.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.views == nil {
		f.views = map[nodepool.ClusterKey]api.View{}
	}
	for _, view := range views {
		f.views[view.Cluster] = view
	}
}

// Views returns all views.
func (f *fleet) Views() []api.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	var views []api.View
	for _, view := range f.views {
		views = append(views, view)
	}
	return views
}

// View returns one view.
func (f *fleet) View(key nodepool.ClusterKey) (api.View, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view, known := f.views[key]
	return view, known
}

// noRequests stores no requests.
type noRequests struct{}

// Get returns no requests.
func (noRequests) ResourceRequests(context.Context, nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return nil, time.Time{}, nil
}

// Set ignores its arguments.
func (noRequests) SetResourceRequests(context.Context, nodepool.ClusterKey, []raydemand.Request, time.Time) error {
	return nil
}

// noOwned stores no requests with owners.
type noOwned struct{ api.OwnedRequests }

// All refuses, as a cluster without ResourceRequests does.
func (noOwned) All(string) ([]nodepool.OwnedRequest, error) { return nil, nodepool.ErrNoRequests }

// List refuses, as All does.
func (noOwned) List(nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	return nil, nodepool.ErrNoRequests
}

func whole(gpus, cpus int64) raydemand.Bundle {
	return raydemand.Bundle{raydemand.GPU: raydemand.Whole(gpus), raydemand.CPU: raydemand.Whole(cpus)}
}

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// busy returns a cluster in which everything that the page can show occurs. The real planner makes the decision.
func busy(now time.Time) api.View {
	timeout := 60.0
	node := func(pod, group string, state planner.NodeState, total, available raydemand.Bundle) planner.Node {
		return planner.Node{Pod: pod, Group: group, State: state, Total: total, Available: available}
	}
	snapshot := planner.Snapshot{
		Name: llm.String(), TakenAt: now, IdleTimeoutSeconds: &timeout,
		Groups: []planner.Group{
			{Name: "a100", Resources: whole(8, 96), Max: 6, NumOfHosts: 1},
			{
				Name:       "cpu",
				Resources:  raydemand.Bundle{raydemand.CPU: raydemand.Whole(16)},
				Min:        1,
				Max:        2147483647,
				NumOfHosts: 1,
			},
			{Name: "mig-1g", Resources: whole(1, 4), Max: 14, NumOfHosts: 1},
			{Name: "spot", Resources: whole(4, 48), Max: 10, NumOfHosts: 1, Closed: "suspended by its RayCluster"},
		},
		Nodes: []planner.Node{
			node("llm-a100-x1", "a100", planner.Running, whole(8, 96), whole(0, 40)),
			node("llm-a100-x2", "a100", planner.Running, whole(8, 96), whole(1, 90)),
			node("llm-a100-x3", "a100", planner.Pending, whole(8, 96), whole(8, 96)),
			node("llm-cpu-k1", "cpu", planner.Running, raydemand.Bundle{raydemand.CPU: raydemand.Whole(16)},
				raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}),
			node("llm-mig-m1", "mig-1g", planner.Running, whole(1, 4), whole(0, 3)),
			node("llm-mig-m3", "mig-1g", planner.Idle, whole(1, 4), whole(1, 4)),
			node("llm-mig-m2", "mig-1g", planner.Leaving, whole(1, 4), whole(1, 4)),
		},
		Demand: raydemand.Demand{
			Requests: []raydemand.Request{
				{
					Bundle: whole(1, 1),
					Count:  9,
				},
				{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}, Count: 12},
				{Bundle: whole(16, 1), Count: 1},
			},
			Gangs: []raydemand.Gang{
				{
					ID:       "3f2a9c",
					Strategy: raydemand.StrictSpread,
					Bundles:  []raydemand.Bundle{whole(8, 8), whole(8, 8), whole(8, 8)},
				},
			},
		},
		KeptResources: []raydemand.Request{{Bundle: whole(1, 1), Count: 4}},
	}
	going, starting := &snapshot.Nodes[1], &snapshot.Nodes[2]
	going.Going = departure.Of(departure.AutoscalerCandidate, "taint DeletionCandidateOfClusterAutoscaler")
	starting.Arrival = &arrival.State{
		Stage: arrival.NodeLaunched, Message: "instance p4d-3", Since: now.Add(-time.Minute),
	}
	plan := planner.Compute(snapshot, planner.Policy{})
	return api.View{
		Decision: &addon.Decision{
			Cluster:  llm,
			Mode:     nodepool.Managed,
			Why:      planner.Reason{Message: "managed by annotation heliostat.dev/mode"},
			At:       now,
			Took:     3200 * time.Microsecond,
			Read:     addon.LatestOf(now),
			Snapshot: snapshot,
			Plan:     plan,
			Findings: []raydemand.Finding{
				{
					Code:     "surplus-deleted-at-random",
					Severity: raydemand.Warning,
					Object:   "RayCluster ml/llm",
					Field:    "spec.enableInTreeAutoscaling",
					Seen:     "false",
					Why:      "whenever there are more pods than replicas, the operator deletes any of them",
					Fix:      "set it to true",
				},
			},
			Recent: []addon.Action{
				{
					At:   now.Add(-65 * time.Second),
					Kind: "drain", Result: "ok",
					Group:   "mig-1g",
					From:    2,
					To:      2,
					Pods:    []string{"llm-mig-m2"},
					Message: "idle for 61s, Ray agreed",
				},
				{
					At:   now.Add(-4 * time.Second),
					Kind: "patch", Result: "ok",
					Group:   "a100",
					From:    2,
					To:      3,
					Pods:    []string{},
					Message: "group a100: replicas 2 → 3: launching 1 pod for 8 × {CPU 1, GPU 1}",
				},
			},
			Kube: nodepool.Cluster{RequestResources: snapshot.KeptResources},
		},
	}
}

// past stores one decision.
type past struct{}

// Entries returns the decision.
func (past) Entries(nodepool.ClusterKey) []apiv1.HistoryEntry {
	at := time.UnixMilli(1772366398000)
	return []apiv1.HistoryEntry{
		{
			ID:     "1772366398000",
			At:     at,
			Mode:   nodepool.Managed,
			Groups: []apiv1.HistoryGroup{},
			Decisions: []apiv1.Decision{
				{
					At:     at,
					Action: "scale-up",
					Group:  "a100",
					From:   0,
					To:     2,
					Pods:   []string{},
					Reason: planner.Reason{Code: "patch-ok", Message: "remembered for long"},
				},
			},
		},
	}
}

// Past returns the snapshot from which the decision was made.
func (past) Past(nodepool.ClusterKey, string) (snapshot json.RawMessage, known bool, err error) {
	return json.RawMessage(
		`{"groups":[{"name":"a100"}],"nodes":[],"pendingRequests":[],"pendingGangRequests":[],"requestResources":[]}`,
	), true, nil
}

// cards are two nodes: one with a partitioned card, one with an unhealthy card.
type cards struct{}

// Nodepools returns the nodes and their pools.
func (cards) Nodepools(context.Context) (apiv1.NodepoolsReport, error) {
	agent := `{"cards":[{"index":0,"uuid":"GPU-a","memoryMiB":40960,"healthy":true,` +
		`"mig":{"enabled":true,"instances":[{"profile":"3g.20gb","start":4},` +
		`{"profile":"1g.5gb","start":0},{"profile":"1g.5gb","start":1}]}}]}`
	mig := sharing.Reader{PoolLabel: "pool"}.Read(sharing.NodeObject{
		Name: "mig-node",
		Labels: map[string]string{
			"pool":                    "slices",
			"nvidia.com/gpu.product":  "NVIDIA-A100-SXM4-40GB",
			"nvidia.com/mig.strategy": "mixed",
		},
		Annotations: map[string]string{
			sharing.AgentAnnotation: agent,
		},
		Allocatable: map[string]int64{"nvidia.com/mig-3g.20gb": 1, "nvidia.com/mig-1g.5gb": 2},
	})
	for i, taken := range []bool{true, true, false} {
		free := !taken
		mig.PerCard[0].Instances[i].Free = &free
	}
	broken, index, ill, gib := "whole-node", 1, false, int64(40960)
	whole := sharing.GPUs{
		Name:  broken,
		Kind:  "whole",
		Units: map[string]int64{"nvidia.com/gpu": 1},
		Problems: []sharing.Problem{
			{Code: "device-unhealthy", Message: "the agent reports card 1 as unhealthy: XID 79"},
		},
		PerCard: []sharing.Card{
			{Index: &index, MemoryMiB: &gib, FreeMiB: &gib, Healthy: &ill, Problem: "XID 79", Source: "agent"},
		},
	}
	return apiv1.NodepoolsReport{
		Nodes: []sharing.GPUs{mig, whole},
		Pools: []landing.Pool{{Name: "slices", Provider: "configured", Nodes: 1, Schedulable: 1, Kind: "mig"}},
	}, nil
}

// owned stores one request that a limit holds back.
type owned struct{ api.OwnedRequests }

// List returns the request.
func (owned) List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	request := nodepool.OwnedRequest{
		Owned: raydemand.Owned{
			ID:       "train-7",
			Owner:    "system:serviceaccount:ml:trainer",
			Priority: 10,
			Requests: []raydemand.Request{
				{
					Bundle: whole(1, 8),
					Count:  4,
					Slice:  &raydemand.SliceRequirement{Memory: 40 << 30, Isolation: "hardware"},
				},
			},
		},
		Cluster:      key,
		LeaseSeconds: 120,
		RenewedAt:    time.Now(),
		Status: nodepool.OwnedStatus{
			State:   raydemand.RequestCapped,
			Since:   time.Now(),
			Code:    planner.Capped,
			Message: "group a100 is at its maximum of 6",
		},
	}
	request.Status.ObservedRequest = request.Fingerprint()
	return []nodepool.OwnedRequest{request}, nil
}

// quiet returns one of many idle clusters.
func quiet(number int) api.View {
	return api.View{
		Decision: &addon.Decision{
			Cluster: nodepool.ClusterKey{
				Namespace: fmt.Sprintf("team-%02d", number%40),
				Name:      fmt.Sprintf("cluster-%04d", number),
			},
			Mode: nodepool.Managed,
			Why:  planner.Reason{Message: "the default"},
			At:   time.Now(),
			Read: addon.LatestOf(time.Now()),
			Plan: planner.Plan{
				Groups: []planner.GroupPlan{{Name: "gpu", Current: 2, Desired: 2, Max: 8, Resources: whole(1, 8)}},
			},
		},
	}
}

// withCosts adds a ledger: for three hours, ml/llm has used 12 GPUs, and had 4 idle because of its minimum.
func withCosts(c *api.Config) {
	now := time.Now()
	begin := now.Add(-3 * time.Hour)
	key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	l := ledger.New(ledger.Limits{})
	pods := func(cause ledger.Cause, why string, gpus float64) ledger.Pod {
		return ledger.Pod{
			Account: ledger.Account{Group: "a100", Owner: "RayCluster/llm", Cause: cause, Why: why},
			Part:    gpus / 4, GPUs: gpus, Hourly: 3 * gpus,
		}
	}
	for at := begin; !at.After(now); at = at.Add(time.Minute) {
		all := []ledger.Pod{pods(ledger.Used, "", 12), pods(ledger.Idle, "minimum", 4)}
		l.Observe(ledger.Observation{At: at, Cluster: key, Pods: all})
	}
	c.Costs, c.Currency = l, "USD"
}
