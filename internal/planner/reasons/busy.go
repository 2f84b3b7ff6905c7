package reasons

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WhyBusy explains why Ray does not report a node that has joined as idle: one reason for each cause, work
// first. There is at least one.
func WhyBusy(n *model.Node) []model.Reason {
	activity, use := raydemand.ReadActivity(n.Activity), inUse(n)
	if len(n.Activity) == 0 {
		return []model.Reason{withoutActivity(use)}
	}
	var causes []model.Reason
	if activity.Workers {
		causes = append(causes, work(n, use))
	}
	if activity.Arguments {
		causes = append(causes, model.Reason{
			Code:    model.PodArguments,
			Message: "a task waits on it until its arguments have arrived",
		})
	}
	if activity.Objects {
		causes = append(causes, objects(n, activity.Workers))
	}
	if !activity.Workers && len(activity.Resources) > 0 {
		causes = append(causes, reserved(n, activity.Resources, use))
	}
	for _, text := range activity.Unknown {
		causes = append(causes, model.Reason{
			Code:    model.PodUnexplained,
			Message: fmt.Sprintf("Ray reports %q, which Heliostat does not know", text),
		})
	}
	return causes
}

// withoutActivity explains a node for which Ray reports no cause: snapshots written by hand have none, and a worker
// that has just joined has none until Ray reports its load.
func withoutActivity(use raydemand.Bundle) model.Reason {
	if use != nil && len(use) == 0 {
		return model.Reason{
			Code:    model.PodBusy,
			Message: "all of its resources are free, but Ray does not report it as idle",
		}
	}
	return model.Reason{Code: model.PodBusy, Message: "it has work, so it is not idle"}
}

func work(n *model.Node, use raydemand.Bundle) model.Reason {
	switch {
	case use != nil && len(use) == 0:
		return model.Reason{
			Code: model.CodeUncounted,
			Message: "tasks or actors run on it that hold no resources: for example the driver of a submitted job, " +
				"a proxy of Ray Serve, or a task that waits in ray.get()",
		}
	case use == nil:
		return model.Reason{Code: model.PodBusy, Message: "tasks or actors run on it"}
	case len(n.PlacedLabels) > 0:
		return model.Reason{
			Code: model.PodBusy,
			Message: "tasks or actors run on it; they use, or placement groups reserve, " +
				phrase.Describe(raydemand.Request{Bundle: use}),
		}
	}
	return model.Reason{
		Code:    model.PodBusy,
		Message: "tasks or actors run on it, which use " + phrase.Describe(raydemand.Request{Bundle: use}),
	}
}

func objects(n *model.Node, works bool) model.Reason {
	holds := "its object store holds primary copies of objects"
	if held := n.Total[raydemand.ObjectStoreMemory] - n.Available[raydemand.ObjectStoreMemory]; held > 0 {
		holds += fmt.Sprintf(" (%s)", phrase.Memory(int64(held.Float())))
	}
	if works {
		return model.Reason{
			Code:    model.CodeHoldsObjects,
			Message: holds + ", which keep it busy after its work is done",
		}
	}
	return model.Reason{
		Code:    model.CodeHoldsObjects,
		Message: "nothing runs on it, but " + holds + "; it becomes idle once nothing references them",
	}
}

func reserved(n *model.Node, names []string, use raydemand.Bundle) model.Reason {
	what := strings.Join(names, ", ")
	if len(use) > 0 {
		what = phrase.Describe(raydemand.Request{Bundle: use})
	}
	if len(n.PlacedLabels) > 0 {
		return model.Reason{
			Code:    model.CodeReserved,
			Message: "nothing runs on it, but placement groups reserve " + what + " of it",
		}
	}
	return model.Reason{
		Code:    model.PodBusy,
		Message: what + " of it is in use: the worker process of a task or actor is starting",
	}
}

// inUse returns what is in use of a node, without its object store and without the resources that Ray adds to each
// node; nil if Ray does not report what the node has, or what of it is free.
func inUse(n *model.Node) raydemand.Bundle {
	switch {
	case len(n.Total) == 0 && n.Available == nil && len(n.Resources) > 0:
		return raydemand.Bundle{} // all of it is free
	case len(n.Total) == 0 || n.Available == nil:
		return nil
	}
	use := raydemand.Bundle{}
	for name, total := range n.Total {
		if free := n.Available[name]; free < total && name != raydemand.ObjectStoreMemory && !added(name) {
			use[name] = total - free
		}
	}
	return use
}

// added reports whether Ray adds a resource to each node.
func added(name string) bool {
	return strings.HasPrefix(name, "node:") || strings.HasPrefix(name, raydemand.ImplicitPrefix)
}

// usesResources reports whether Ray reports work and a resource in use, as it does for most nodes of a busy cluster:
// WhyBusy takes a hundred times as long.
func usesResources(n *model.Node) bool {
	works, used := false, false
	for _, text := range n.Activity {
		name, inUse := raydemand.ActiveResource(text)
		works = works || text == raydemand.ActiveWorkers
		used = used || inUse && name != raydemand.ObjectStoreMemory && !added(name)
	}
	return works && used
}

// heldIdle counts the group's workers that would be idle but for one thing that uses none of their resources, by
// cause.
func (w *Writer) heldIdle(i int) []model.Reason {
	count := map[string]int64{}
	for at := range w.Nodes {
		n := &w.Nodes[at]
		if n.GroupIndex == i && n.Stop == "" && n.State == model.Running && len(n.Activity) > 0 &&
			!usesResources(n.Node) {
			count[WhyBusy(n.Node)[0].Code]++
		}
	}
	var held []model.Reason
	for _, cause := range []struct{ code, keeps string }{
		{model.CodeHoldsObjects, "primary copies of objects keep %s from being idle; nothing runs there"},
		{model.CodeReserved, "placement groups keep %s from being idle; nothing runs there"},
		{model.CodeUncounted, "tasks or actors that hold no resources keep %s from being idle"},
	} {
		if n := count[cause.code]; n > 0 {
			held = append(held, model.Reason{Code: cause.code, Message: fmt.Sprintf(cause.keeps, phrase.Pods(n))})
		}
	}
	return held
}
