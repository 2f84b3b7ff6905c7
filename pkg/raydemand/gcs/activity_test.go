package gcs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestRecordedRepliesSayWhatKeepsANodeBusy(t *testing.T) {
	const gpuWorker, cpuWorker = "demo-gpu-t4-worker-a1b2c", "demo-cpu-worker-g5h6j"
	reserved := []string{"CPU", "GPU"}
	for _, test := range []struct {
		state, pod string
		// placed: placement groups have bundles on the node.
		placed bool
		want   raydemand.Activity
	}{
		{"busy-task", gpuWorker, false, raydemand.Activity{Workers: true, Resources: reserved}},
		{"busy-actor-zero-cpu", cpuWorker, false, raydemand.Activity{Workers: true}},
		{"busy-object", cpuWorker, false, raydemand.Activity{Objects: true}},
		{"pg-created", gpuWorker, true, raydemand.Activity{Workers: true, Resources: reserved}},
		{"pg-rescheduling", gpuWorker, true, raydemand.Activity{Resources: reserved}},
		// The worker process of a task is still starting.
		{"backlog-first", gpuWorker, false, raydemand.Activity{Resources: reserved}},
		{"draining-busy", "demo-gpu-t4-worker-d3e4f", false,
			raydemand.Activity{Workers: true, Resources: []string{"CPU", "GPU", "node:127.0.1.12"}}},
	} {
		recorded := 0
		for _, version := range versions {
			if !recordedState(t, version, test.state) {
				continue
			}
			for _, n := range readState(t, version, test.state).Nodes {
				if n.Instance != test.pod || n.Status != raydemand.Running && n.Status != raydemand.Draining {
					continue
				}
				recorded++
				if diff := cmp.Diff(test.want, raydemand.ReadActivity(n.Activity)); diff != "" {
					t.Errorf("%s %s: %s is %s: (-want +got)\n%s", version, test.state, n.Instance, n.Status, diff)
				}
				if placed := len(n.PlacedLabels) > 0; placed != test.placed {
					t.Errorf("%s %s: %s has placed labels %v", version, test.state, n.Instance, n.PlacedLabels)
				}
			}
		}
		if recorded == 0 {
			t.Errorf("no version has %s with %s", test.state, test.pod)
		}
	}
}

func TestAnActorIsReadAsAResident(t *testing.T) {
	node := raydemand.NodeID{7}
	for name, c := range map[string]struct {
		actor *raypb.ActorTableData
		want  raydemand.Resident
	}{
		// As seen on a head of Ray 2.60.0.
		"a Serve replica": {
			actor: &raypb.ActorTableData{State: raypb.ActorTableData_ALIVE, Name: "SERVE_REPLICA::app#D#ym0s79hp",
				ClassName: "ServeReplica:app:D", RayNamespace: "serve", IsDetached: true,
				RequiredResources: map[string]float64{"CPU": 1, "node:__internal_implicit_resource_app:D": 0.5}},
			want: raydemand.Resident{Alive: true, Name: "SERVE_REPLICA::app#D#ym0s79hp", Class: "ServeReplica:app:D", Namespace: "serve",
				Resources: raydemand.Bundle{"CPU": raydemand.One, "node:__internal_implicit_resource_app:D": raydemand.One / 2}},
		},
		"a proxy of Serve": {
			actor: &raypb.ActorTableData{State: raypb.ActorTableData_ALIVE, ClassName: "ProxyActor", RayNamespace: "serve",
				LabelSelector: map[string]string{"ray.io/node-id": "86dcaf"}},
			want: raydemand.Resident{Alive: true, Class: "ProxyActor", Namespace: "serve", Resources: raydemand.Bundle{},
				Selector: raydemand.NewSelector(raydemand.Constraint{Key: "ray.io/node-id", Op: raydemand.In, Values: []string{"86dcaf"}})},
		},
		"an actor that is always restarted": {
			actor: &raypb.ActorTableData{State: raypb.ActorTableData_RESTARTING, ClassName: "A", MaxRestarts: -1, NumRestarts: 9},
			want:  raydemand.Resident{Class: "A", Restarts: raydemand.RestartsAlways, Resources: raydemand.Bundle{}},
		},
		"one that has restarts left": {
			actor: &raypb.ActorTableData{ClassName: "A", MaxRestarts: 3, NumRestarts: 1},
			want:  raydemand.Resident{Class: "A", Restarts: 2, Resources: raydemand.Bundle{}},
		},
		"one that was restarted more often, for preemption": {
			actor: &raypb.ActorTableData{ClassName: "A", MaxRestarts: 1, NumRestarts: 5},
			want:  raydemand.Resident{Class: "A", Resources: raydemand.Bundle{}},
		},
		"one in a placement group": {
			actor: &raypb.ActorTableData{ClassName: "A", PlacementGroupId: []byte{1, 2}},
			want:  raydemand.Resident{Class: "A", Grouped: true, Resources: raydemand.Bundle{}},
		},
		"the nil id of a placement group": {
			actor: &raypb.ActorTableData{ClassName: "A", PlacementGroupId: []byte{0xff, 0xff}},
			want:  raydemand.Resident{Class: "A", Resources: raydemand.Bundle{}},
		},
		"a selector that Ray would refuse": {
			actor: &raypb.ActorTableData{ClassName: "A", LabelSelector: map[string]string{"zone": "in()"}},
			want:  raydemand.Resident{Class: "A", SelectorUnknown: true, Resources: raydemand.Bundle{}},
		},
	} {
		c.actor.NodeId, c.want.Node = node[:], node
		got, err := residentOf(c.actor)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// Ray ends the actors that a process has started when the process ends, except detached ones.
func TestAnActorThatHasStartedOthersOwnsThem(t *testing.T) {
	node := raydemand.NodeID{7}
	process := func(id byte) *raypb.Address { return &raypb.Address{WorkerId: []byte{id}} }
	parent := &raypb.ActorTableData{ClassName: "Parent", NodeId: node[:], Address: process(1), OwnerAddress: process(9)}
	for name, c := range map[string]struct {
		child *raypb.ActorTableData
		want  bool
	}{
		"a living one":             {&raypb.ActorTableData{State: raypb.ActorTableData_ALIVE, NodeId: node[:], Address: process(2)}, true},
		"one that has no node yet": {&raypb.ActorTableData{State: raypb.ActorTableData_PENDING_CREATION}, true},
		"a detached one":           {&raypb.ActorTableData{State: raypb.ActorTableData_ALIVE, IsDetached: true}, false},
		"one that has ended":       {&raypb.ActorTableData{State: raypb.ActorTableData_DEAD}, false},
	} {
		c.child.OwnerAddress = process(1)
		got, err := residentsOf([]*raypb.ActorTableData{parent, c.child})
		if err != nil || got[0].Class != "Parent" || got[0].Owns != c.want {
			t.Errorf("%s: the parent is read as %+v, %v, want Owns: %t", name, got, err, c.want)
		}
	}
	waiting := &raypb.ActorTableData{ClassName: "Restarting", State: raypb.ActorTableData_RESTARTING, NodeId: node[:], OwnerAddress: &raypb.Address{}}
	if got, err := residentsOf([]*raypb.ActorTableData{waiting}); err != nil || got[0].Owns {
		t.Errorf("an actor without a process owns others: %+v, %v", got, err)
	}
}

func TestAnActorThatCannotBeReadIsAnError(t *testing.T) {
	node := raydemand.NodeID{7}
	for want, actor := range map[string]*raypb.ActorTableData{
		"node id has 2 bytes": {NodeId: []byte{1, 2}},
		"CPU":                 {NodeId: node[:], RequiredResources: map[string]float64{"CPU": -1}},
	} {
		if got, err := residentOf(actor); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v, want an error about %s", got, err, want)
		}
	}
}

// tableWith answers with n actors: living ones, and as the last ones those.
func tableWith(t *testing.T, n int, last ...*raypb.ActorTableData) answer {
	t.Helper()
	reply := &raypb.GetAllActorInfoReply{Status: &raypb.GcsStatus{}, Total: int64(10 * n)}
	for range n - len(last) {
		reply.ActorTableData = append(reply.ActorTableData, &raypb.ActorTableData{State: raypb.ActorTableData_ALIVE})
	}
	reply.ActorTableData = append(reply.ActorTableData, last...)
	return replyOf(t, reply)
}

func TestTheActorTableIsReadInPart(t *testing.T) {
	ended := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD}
	mayRestart := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD, MaxRestarts: -1}
	r := newReplay(t)
	r.set("GetAllJobInfo", replyOf(t, &raypb.GetAllJobInfoReply{Status: &raypb.GcsStatus{}}))
	client := dial(t, r)
	for name, c := range map[string]struct {
		answer   func(most int) answer
		complete bool
	}{
		"few":                       {func(int) answer { return tableWith(t, 3, ended) }, true},
		"many, and ended ones last": {func(most int) answer { return tableWith(t, most, ended) }, true},
		"many in another order": {func(most int) answer {
			return tableWith(t, most, ended, &raypb.ActorTableData{})
		}, false},
		"many that may be restarted, after ended ones": {func(most int) answer {
			return tableWith(t, most, ended, mayRestart)
		}, true},
		"too many that live": {func(most int) answer { return tableWith(t, most, &raypb.ActorTableData{}) }, false},
		"too many, one of which may be restarted": {
			func(most int) answer { return tableWith(t, most, mayRestart) }, false},
	} {
		r.set("GetAllActorInfo", c.answer(mostActors))
		_, err := client.Residents(t.Context())
		if c.complete && err != nil || !c.complete && (err == nil || !strings.Contains(err.Error(), "more than 10000 actors")) {
			t.Errorf("%s: residents: %v", name, err)
		}
	}
	for _, call := range r.called("GetAllActorInfo") {
		var request raypb.GetAllActorInfoRequest
		if err := proto.Unmarshal(call.request, &request); err != nil || request.GetLimit() == 0 {
			t.Errorf("request %v, %v: want a limit", &request, err)
		}
	}
}

func TestATableOfActorsThatIsCutNeverMakesARayClusterLookEmpty(t *testing.T) {
	ended := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD}
	mayRestart := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD, MaxRestarts: -1}
	r := newReplay(t)
	for method, none := range map[string]proto.Message{
		"GetAllJobInfo":        &raypb.GetAllJobInfoReply{Status: &raypb.GcsStatus{}},
		"GetAllPlacementGroup": &raypb.GetAllPlacementGroupReply{Status: &raypb.GcsStatus{}},
	} {
		r.set(method, replyOf(t, none))
	}
	client := dial(t, r)
	dead := func(n int, of *raypb.ActorTableData) []*raypb.ActorTableData {
		return slices.Repeat([]*raypb.ActorTableData{of}, n)
	}
	for name, c := range map[string]struct {
		table   []*raypb.ActorTableData
		living  int
		more    bool
		unknown bool
	}{
		"nothing":                 {nil, 0, false, false},
		"ended ones":              {dead(3, ended), 0, false, false},
		"all rows are ended ones": {dead(mostActors, ended), 0, false, false},
		"one lives before them":   {append([]*raypb.ActorTableData{{}}, dead(mostActors-1, ended)...), 1, false, false},
		"one lives after them":    {append(dead(mostActors-1, ended), &raypb.ActorTableData{}), 1, true, false},
		"all rows live":           {dead(mostActors, &raypb.ActorTableData{}), mostActors, true, false},
		"a Serve that is gone, whose replicas could restart":   {dead(mostActors-1, mayRestart), 0, false, false},
		"all rows may be restarted, so living ones may follow": {dead(mostActors, mayRestart), 0, true, true},
	} {
		r.set("GetAllActorInfo", tableWith(t, len(c.table), c.table...))
		got, err := client.Occupants(t.Context())
		if got.Actors.Count != c.living || got.Actors.More != c.more || (err != nil) != c.unknown {
			t.Errorf("%s: %+v, %v", name, got.Actors, err)
		}
	}
}
