package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func objectUnreadable(x *inventory.Inventory, report reporter) {
	for i := range x.Input.Objects {
		o := &x.Input.Objects[i]
		severity, why := raydemand.Severity(""), ""
		if o.Kind == "ResourceRequest" {
			severity, why = raydemand.Error, "Heliostat cannot read the request, so it is not served"
		}
		for _, text := range o.Unreadable {
			report(occurrence{object: o, seen: text, severity: severity, why: why,
				fix: fix.Run(fix.Kubectl(o, "get", "-o", "yaml")).Hint("and correct the field that is named here")})
		}
	}
}

func gpuNodesCordoned(x *inventory.Inventory, report reporter) {
	var names []string
	var first *inventory.Object
	for i := range x.Nodes {
		n := &x.Nodes[i]
		if !n.HasGPUs() {
			continue
		}
		if !n.Node.GPUs.Unschedulable {
			return
		}
		names = append(names, fix.Quote(n.Name))
		if first == nil {
			first = n.Object
		}
	}
	if first != nil {
		report(occurrence{object: first, path: fieldpath.NewPath("spec", "unschedulable"),
			seen: fmt.Sprintf("true on %d of %d nodes with GPUs", len(names), len(names)),
			fix:  fix.Run("kubectl uncordon " + strings.Join(names, " "))})
	}
}

// The GPU operator's label for the update of a node's driver, and two of its values.
const (
	driverState   = "nvidia.com/gpu-driver-upgrade-state"
	upgradeDone   = "upgrade-done"
	upgradeFailed = "upgrade-failed"
)

var driverStateLabel = fieldpath.NewPath("metadata", "labels", driverState)

func gpuDriverUpgrading(_ *inventory.Inventory, n *inventory.Node, report reporter) {
	state := n.Node.GPUs.Labels[driverState]
	if state != "" && state != upgradeDone && state != upgradeFailed {
		report(occurrence{object: n.Object, path: driverStateLabel, seen: state,
			fix: fix.Run(fix.Kubectl(n.Object, "get", "-L", driverState, "-w")).Hint("wait for " + upgradeDone)})
	}
}

func gpuDriverUpgradeFailed(_ *inventory.Inventory, n *inventory.Node, report reporter) {
	if state := n.Node.GPUs.Labels[driverState]; state == upgradeFailed {
		report(occurrence{object: n.Object, path: driverStateLabel, seen: state,
			fix: fix.Run("kubectl delete pod -A -l app=nvidia-driver-daemonset --field-selector " + onNode(n))})
	}
}

func gpuLostAfterUpgrade(x *inventory.Inventory, n *inventory.Node, report reporter) {
	gpus := n.Node.GPUs
	hasNone := gpus.Labels["nvidia.com/gpu.present"] == "false"
	if gpus.Labels[driverState] != upgradeDone || gpus.Allocatable == nil || hasNone {
		return
	}
	for name, units := range gpus.Allocatable {
		if units > 0 && inventory.IsGPU(x.Input.Reader.Names, name) {
			return
		}
	}
	report(occurrence{
		object: n.Object, path: allocatable, seen: driverState + "=" + upgradeDone + ", no GPU allocatable",
		fix: fix.Run(restartPlugin(n)),
	})
}
