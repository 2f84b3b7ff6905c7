package doctor

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	driverState = "nvidia.com/gpu-driver-upgrade-state"
	upgradeDone = "upgrade-done"
)

// nodeStates are checks of nodes that stand in the way for a while: cordons, updates of the driver.
var nodeStates = []Check{
	{
		Code: "object-unreadable", Severity: raydemand.Warning,
		Why: "what it would tell is not known, and the rest is looked at as if it were not there",
		look: func(x *exam, tell func(sight)) {
			for i := range x.input.Objects {
				o := &x.input.Objects[i]
				for _, text := range o.Unreadable {
					tell(sight{of: o, seen: text, fix: run(o.kubectl("get", "-o", "yaml")).hint("and mend what is named")})
				}
			}
		},
	},
	{
		Code: "gpu-nodes-cordoned", Severity: raydemand.Error,
		Why: "no pod that asks for a GPU can be scheduled, however many are launched",
		look: func(x *exam, tell func(sight)) {
			var names []string
			var first *Object
			for i := range x.nodes {
				n := &x.nodes[i]
				switch {
				case !n.hasGPUs():
				case !n.Node.GPUs.Unschedulable:
					return
				default:
					names = append(names, quote(n.Name))
					if first == nil {
						first = n.Object
					}
				}
			}
			if first != nil {
				tell(sight{of: first, at: place{"spec", "unschedulable"}, seen: fmt.Sprintf("true on %d of %d nodes with GPUs", len(names), len(names)),
					fix: run("kubectl uncordon " + strings.Join(names, " "))})
			}
		},
	},
	{
		Code: "gpu-driver-upgrading", Severity: raydemand.Warning,
		Why: "the node's GPUs go and come while its driver is updated: capacity of 0 says nothing there",
		look: perNode(func(_ *exam, n *examNode, tell func(sight)) {
			if state := n.Node.GPUs.Labels[driverState]; state != "" && state != upgradeDone && state != "upgrade-failed" {
				tell(sight{of: n.Object, at: place{"metadata", "labels", driverState}, seen: state, fix: run(n.kubectl("get", "-L", driverState, "-w")).
					hint("wait for " + upgradeDone)})
			}
		}),
	},
	{
		Code: "gpu-driver-upgrade-failed", Severity: raydemand.Error,
		Why: "the operator leaves the node cordoned until somebody looks",
		look: perNode(func(_ *exam, n *examNode, tell func(sight)) {
			if state := n.Node.GPUs.Labels[driverState]; state == "upgrade-failed" {
				tell(sight{of: n.Object, at: place{"metadata", "labels", driverState}, seen: state,
					fix: run("kubectl delete pod -A -l app=nvidia-driver-daemonset --field-selector " + quote("spec.nodeName="+n.Name))})
			}
		}),
	},
	{
		Code: "gpu-lost-after-upgrade", Severity: raydemand.Error,
		Why: "the driver is updated and no GPU came back: the device plugin has not found the new driver",
		look: perNode(func(x *exam, n *examNode, tell func(sight)) {
			if n.Node.GPUs.Labels[driverState] != upgradeDone || n.Node.GPUs.Allocatable == nil || n.Node.GPUs.Labels["nvidia.com/gpu.present"] == "false" {
				return
			}
			for name, units := range n.Node.GPUs.Allocatable {
				if units > 0 && isGPU(x.input.Reader.Names, name) {
					return
				}
			}
			tell(sight{of: n.Object, at: place{"status", "allocatable"}, seen: driverState + "=" + upgradeDone + ", no GPU allocatable", fix: run(restartPlugin(n))})
		}),
	},
}

// evenLayout names a layout of mig-parted with one profile on all cards: the smallest one of the product.
func (n *examNode) evenLayout() string {
	model := ""
	if n.gpus.Product != nil {
		model = *n.gpus.Product
	}
	product, known := gpuinfo.ProductOf(model)
	if !known {
		return "all-disabled"
	}
	plain := slices.DeleteFunc(slices.Clone(product.Profiles), func(p gpuinfo.Profile) bool { return !p.Plain() })
	smallest := slices.MinFunc(plain, func(a, b gpuinfo.Profile) int { return (a.Slices*100 + a.Size) - (b.Slices*100 + b.Size) })
	return "all-" + smallest.Name
}
