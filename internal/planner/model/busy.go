package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Busy explains why Ray does not report a node that has joined as idle: one reason for each cause, work first. There
// is at least one: snapshots written by hand have no activity, and a worker that has just joined has none until Ray
// reports its load.
func (n *Node) Busy() (causes []Reason) {
	add := func(code, text string, args ...any) {
		causes = append(causes, Reason{Code: code, Message: fmt.Sprintf(text, args...)})
	}
	activity, use := raydemand.ReadActivity(n.Activity), n.heldByWork()
	uses, unused := Describe(raydemand.Request{Bundle: use}), use != nil && len(use) == 0
	switch {
	case len(n.Activity) == 0 && unused:
		add(PodBusy, "all of its resources are free, but Ray does not report it as idle")
		return causes
	case len(n.Activity) == 0:
		add(PodBusy, "it has work, so it is not idle")
		return causes
	case activity.Workers && unused:
		add(CodeUncounted, "tasks or actors run on it that hold no resources: for "+
			"example the driver of a submitted job, a proxy of Ray Serve, or a task that waits in ray.get()")
	case activity.Workers && len(n.PlacedLabels) > 0 && use != nil:
		add(PodBusy, "tasks or actors run on it; they use, or placement groups reserve, %s", uses)
	case activity.Workers:
		add(PodBusy, "tasks or actors run on it%s", strings.TrimSuffix(", which use "+uses, ", which use {}"))
	}
	if activity.Arguments {
		add(PodArguments, "a task waits on it until its arguments have arrived")
	}
	if activity.Objects {
		size, held := "", n.Total[raydemand.ObjectStoreMemory]-n.Available[raydemand.ObjectStoreMemory]
		if held > 0 {
			size = fmt.Sprintf(" (%s)", Memory(int64(held.Float())))
		}
		text := "nothing runs on it, but its object store holds primary copies of objects%s; it becomes idle once " +
			"nothing references them"
		if activity.Workers {
			text = "its object store holds primary copies of objects%s, which keep it busy after its work is done"
		}
		add(CodeHoldsObjects, text, size)
	}
	if len(use) == 0 {
		uses = strings.Join(activity.Resources, ", ")
	}
	switch {
	case activity.Workers || len(activity.Resources) == 0:
	case len(n.PlacedLabels) > 0:
		add(CodeReserved, "nothing runs on it, but placement groups reserve %s of it", uses)
	default:
		add(PodBusy, "%s of it is in use: the worker process of a task or actor is starting", uses)
	}
	for _, text := range activity.Unknown {
		add(PodUnexplained, "Ray reports %q, which Heliostat does not know", text)
	}
	return causes
}

// PlainlyBusy reports that a node has work on its GPUs, or CPUs, as most do: Busy takes a hundred times as long.
func (n *Node) PlainlyBusy() bool {
	return n.Available != nil && n.Available[n.Main()] < n.Total[n.Main()] &&
		slices.Contains(n.Activity, raydemand.ActiveWorkers)
}

// heldByWork returns what is in use of a node, without its object store and without the resources that Ray adds to each
// node; nil if Ray does not report what the node has, or what of it is free.
func (n *Node) heldByWork() raydemand.Bundle {
	switch {
	case len(n.Total) == 0 && n.Available == nil && len(n.Resources) > 0:
		return raydemand.Bundle{} // all of it is free
	case len(n.Total) == 0 || n.Available == nil:
		return nil
	}
	use := n.InUse()
	maps.DeleteFunc(use, func(name string, _ raydemand.Amount) bool {
		return strings.HasPrefix(name, raydemand.ImplicitPrefix)
	})
	return use
}
