package gcs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
