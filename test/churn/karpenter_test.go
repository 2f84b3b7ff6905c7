package main

import (
	"testing"

	"heliostat.dev/heliostat/test/rig"
)

// A machine counts as removed under work only if a worker with work is on it when Karpenter begins to remove it.
func TestMachinesThatGoUnderWorkAreCounted(t *testing.T) {
	on := func(machine, pod string) []rig.Fact {
		return []rig.Fact{
			{Stage: rig.MachineLaunched, Machine: machine},
			{Stage: rig.MachineReady, Machine: machine, Detail: "node kwok-" + machine},
			{Stage: rig.Scheduled, Pod: pod, Detail: "on kwok-" + machine},
			{Stage: rig.NodeBusy, Pod: pod},
		}
	}
	leaving := func(machine string) rig.Fact { return rig.Fact{Stage: rig.MachineLeaving, Machine: machine} }
	facts := append(on("m1", "busy"), on("m2", "idle")...)
	facts = append(facts, rig.Fact{Stage: rig.NodeIdle, Pod: "idle"}, leaving("m1"), leaving("m1"), leaving("m2"),
		rig.Fact{Stage: rig.MachineGone, Machine: "m2"})
	if n := busyMachines(facts); n != 1 {
		t.Errorf("%d machines went under work, want 1", n)
	}
	if launched, gone := machinesAt(
		facts,
		rig.MachineLaunched,
	), machinesAt(
		facts,
		rig.MachineGone,
	); launched != 2 ||
		gone != 1 {
		t.Errorf("%d machines launched and %d gone, want 2 and 1", launched, gone)
	}
}
