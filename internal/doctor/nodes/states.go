package nodes

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
)

// nodes examines each node.
func nodes(examine func(*inventory.Inventory, *inventory.Node, check.Reporter)) check.Scope {
	return check.Scope{Of: "nodes", Run: func(x *inventory.Inventory, _ string, report check.Reporter) {
		for i := range x.Nodes {
			examine(x, &x.Nodes[i], report)
		}
	}}
}

func gpuNodesCordoned(x *inventory.Inventory, report check.Reporter) {
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
		report(check.Occurrence{Object: first, Path: fieldpath.NewPath("spec", "unschedulable"),
			Seen: fmt.Sprintf("true on %d of %d nodes with GPUs", len(names), len(names)),
			Fix:  fix.Run("kubectl uncordon " + strings.Join(names, " "))})
	}
}

// The GPU operator's label for the update of a node's driver, and two of its values.
const (
	driverState   = "nvidia.com/gpu-driver-upgrade-state"
	upgradeDone   = "upgrade-done"
	upgradeFailed = "upgrade-failed"
)

var driverStateLabel = fieldpath.NewPath("metadata", "labels", driverState)

func gpuDriverUpgrading(_ *inventory.Inventory, n *inventory.Node, report check.Reporter) {
	state := n.Node.GPUs.Labels[driverState]
	if state != "" && state != upgradeDone && state != upgradeFailed {
		report(check.Occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: fix.Run(fix.Kubectl(n.Object, "get", "-L", driverState, "-w")).Hint("wait for " + upgradeDone)})
	}
}

func gpuDriverUpgradeFailed(_ *inventory.Inventory, n *inventory.Node, report check.Reporter) {
	if state := n.Node.GPUs.Labels[driverState]; state == upgradeFailed {
		report(check.Occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: fix.Run("kubectl delete pod -A -l app=nvidia-driver-daemonset --field-selector " + onNode(n))})
	}
}

func gpuLostAfterUpgrade(x *inventory.Inventory, n *inventory.Node, report check.Reporter) {
	gpus := n.Node.GPUs
	hasNone := gpus.Labels["nvidia.com/gpu.present"] == "false"
	if gpus.Labels[driverState] != upgradeDone || gpus.Allocatable == nil || hasNone ||
		len(gpus.Devices) > 0 {
		return
	}
	for name, units := range gpus.Allocatable {
		if units > 0 && inventory.IsGPU(x.Input.Reader.Names, name) {
			return
		}
	}
	report(check.Occurrence{
		Object: n.Object, Path: allocatable, Seen: driverState + "=" + upgradeDone + ", no GPU allocatable",
		Fix: fix.Run(restartPlugin(n)),
	})
}
