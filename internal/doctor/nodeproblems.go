package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodeProblem reports what reading a node's GPUs found under the code of the check, at a field of the node. The codes
// are those of docs/reference/gpus.md; problems that change plans have the reason that plans give. A cordon alone is no
// fault. What a foreign device is depends on its name, so one node stands for all.
func nodeProblem(at fieldpath.Path, command func(*inventory.Node) string) scope {
	return func(x *inventory.Inventory, code string, report reporter) {
		foreign := map[string]bool{}
		for _, n := range x.Nodes {
			for _, p := range n.GPUs.Problems {
				if string(p.Code) == code && !foreign[p.Message] {
					foreign[p.Message] = p.Code == sharing.ResourceForeign
					path := at
					if p.Annotation != "" {
						path = annotations.Key(p.Annotation)
					}
					planned, _ := landing.NodeProblem(n.Name, p)
					report(occurrence{
						Object: n.Object, Path: path, Seen: p.Message, Why: planned.Why, Fix: fix.Run(command(n)),
					})
				}
			}
		}
	}
}

// Fields of nodes.
var (
	wholeNode     = fieldpath.NewPath()
	allocatable   = fieldpath.NewPath("status", "allocatable")
	conditions    = fieldpath.NewPath("status", "conditions")
	nodeLabels    = fieldpath.NewPath("metadata", "labels")
	migStateLabel = nodeLabels.Key("nvidia.com/mig.config.state")
	productLabel  = nodeLabels.Key("nvidia.com/gpu.product")
	annotations   = fieldpath.NewPath("metadata", "annotations")
	hamiRegister  = annotations.Key("hami.io/node-nvidia-register")
	hamiCordon    = annotations.Key("hami.io/device-cordon")
	workloadLabel = nodeLabels.Key("nvidia.com/gpu.workload.config")
	agentsMessage = annotations.Key(sharing.AgentAnnotation)
)

// restartPlugin makes NVIDIA's device plugin read the devices again.
func restartPlugin(n *inventory.Node) string {
	return "kubectl delete pod -A -l app=nvidia-device-plugin-daemonset --field-selector " + onNode(n) +
		fix.Comment("with the plugin's Helm chart: -l app.kubernetes.io/name=nvidia-device-plugin")
}

func onNode(n *inventory.Node) string { return fix.Quote("spec.nodeName=" + n.Name) }

func cordon(n *inventory.Node) string {
	return "kubectl cordon " + fix.Quote(n.Name) +
		fix.Comment("running pods continue; drain and replace the node when they are done")
}

// showPlugin shows whether a device plugin runs there: installing one and repairing one are different things.
func showPlugin(n *inventory.Node) string {
	return "kubectl get pod -A -o wide --field-selector " + onNode(n) +
		fix.Comment("must show a device plugin; install it, or see its log. If Dynamic Resource Allocation allocates "+
			"the GPUs, let the doctor read the ResourceSlices too")
}

func deployForContainers(n *inventory.Node) string {
	return fix.Kubectl(n.Object, "label", "--overwrite", "nvidia.com/gpu.workload.config=container") +
		fix.Comment("if pods should use the GPUs; virtual machines then cannot")
}

func deployPlugin(n *inventory.Node) string {
	label := "nvidia.com/gpu.deploy.device-plugin=true"
	if n.Node.GPUs.Labels[gkeNoPlugin] != "" {
		label = gkeNoPlugin + "-"
	}
	return fix.Kubectl(n.Object, "label", label) + fix.Comment("if pods should request GPUs as resources")
}

const gkeNoPlugin = "gke-no-default-nvidia-gpu-device-plugin"

func showMIGManager(*inventory.Node) string {
	return "kubectl logs -n gpu-operator -l app=nvidia-mig-manager --tail=50" +
		fix.Comment("pods that use the GPUs delay the change")
}

func applyEvenLayout(n *inventory.Node) string {
	return fix.Kubectl(n.Object, "label", "--overwrite", "nvidia.com/mig.config="+evenLayout(n))
}

// evenLayout returns the layout of mig-parted that has one profile on all cards: the smallest one of the product.
func evenLayout(n *inventory.Node) string {
	model := ""
	if n.GPUs.Product != nil {
		model = *n.GPUs.Product
	}
	product, known := gpuinfo.ProductOf(model)
	if !known {
		return "all-disabled"
	}
	plain := slices.DeleteFunc(slices.Clone(product.Profiles), func(p gpuinfo.Profile) bool { return !p.Plain() })
	smallest := slices.MinFunc(plain, func(a, b gpuinfo.Profile) int {
		return cmp.Or(cmp.Compare(a.Slices, b.Slices), cmp.Compare(a.Size, b.Size))
	})
	return "all-" + smallest.Name
}

func restartFeatureDiscovery(*inventory.Node) string {
	return "kubectl rollout restart -n gpu-operator daemonset/gpu-feature-discovery" +
		fix.Comment("after you update it")
}

func editHAMi(*inventory.Node) string {
	return "kubectl edit configmap hami-device-plugin -n kube-system" + fix.Comment("set devicememoryscaling to 1")
}

func restartVolcanoPlugin(n *inventory.Node) string {
	return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=volcano-device-plugin" +
		" --field-selector " + onNode(n)
}

func restartHAMi(n *inventory.Node) string {
	return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=hami-device-plugin" +
		" --field-selector " + onNode(n)
}

// restartRegister restarts the device plugin that writes the register of cards.
func restartRegister(n *inventory.Node) string {
	for _, p := range n.GPUs.Problems {
		switch {
		case p.Code != sharing.RegisterUnreadable:
		case !p.ByHAMi():
			return restartVolcanoPlugin(n)
		case annotations.Key(p.Annotation).String() != hamiRegister.String():
			return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=hami-ascend-device-plugin" +
				" --field-selector " + onNode(n)
		}
	}
	return restartHAMi(n)
}

func showAscend(n *inventory.Node) string {
	return showNode(n, "and bound the group's maxReplicas by what its cards hold, if its pods take more than a "+
		"share each")
}

func removeRegister(n *inventory.Node) string {
	return fix.Kubectl(n.Object, "annotate", "hami.io/node-nvidia-register-") +
		fix.Comment("if HAMi is gone; otherwise keep NVIDIA's device plugin away from the node")
}

func uncordonCard(n *inventory.Node) string {
	return fix.Kubectl(n.Object, "annotate", "hami.io/device-cordon-") +
		fix.Comment("when new pods may use all cards again")
}

func showMemory(n *inventory.Node) string {
	return showNode(n, "and compare the labels with what nvidia-smi or amd-smi shows there; if a unit is a part of a "+
		"card, this is as it should be")
}

func showFactor(n *inventory.Node) string {
	return showNode(n, "and compare the memory factor of the device plugin with that of the scheduler")
}

func showAgent(n *inventory.Node) string {
	return "kubectl get pod -A -o wide -l app=heliostat-agent --field-selector " + onNode(n) +
		fix.Comment("shows the agent; if there is none: "+
			"kubectl annotate node "+fix.Quote(n.Name)+" heliostat.dev/gpus-")
}

func describeNode(n *inventory.Node) string {
	return "kubectl describe node " + fix.Quote(n.Name) + fix.Comment("its conditions say what is wrong")
}

func showLabels(n *inventory.Node) string { return showNode(n, "and fix what writes the label") }

func labelSharing(n *inventory.Node) string {
	return showNode(n, "and run GPU feature discovery, which labels shared and partitioned cards, "+
		"or name the kind with --resource NAME=KIND")
}

func showAmounts(n *inventory.Node) string {
	return showNode(n, "and fix what announces it: a device plugin, or whoever patched the status by hand")
}

func showResources(n *inventory.Node) string {
	return showNode(n, "shows what announces it; "+
		"declare what it is to doctor, nodepools and serve with --resource NAME=KIND")
}

func showAllocations(*inventory.Node) string {
	return "kubectl get allocationclaims -A" + fix.Comment("shows the instances that pods have")
}

func showNames(n *inventory.Node) string {
	return showNode(n, "and restart the device plugin and the labeller; names that nothing announces any more go when "+
		"the kubelet restarts")
}

// showNode prints the node; a comment says what to do then.
func showNode(n *inventory.Node, comment string) string {
	return fix.Kubectl(n.Object, "get", "-o", "yaml") + fix.Comment(comment)
}

func gpuNodesCordoned(x *inventory.Inventory, report reporter) {
	var names []string
	var first *inventory.Object
	for _, n := range x.Nodes {
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
		report(occurrence{Object: first, Path: fieldpath.NewPath("spec", "unschedulable"),
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

func gpuDriverUpgrading(_ *inventory.Inventory, n *inventory.Node, report reporter) {
	state := n.Node.GPUs.Labels[driverState]
	if state != "" && state != upgradeDone && state != upgradeFailed {
		report(occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: fix.Run(fix.Kubectl(n.Object, "get", "-L", driverState, "-w")).Hint("wait for " + upgradeDone)})
	}
}

func gpuDriverUpgradeFailed(_ *inventory.Inventory, n *inventory.Node, report reporter) {
	if state := n.Node.GPUs.Labels[driverState]; state == upgradeFailed {
		report(occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: fix.Run("kubectl delete pod -A -l app=nvidia-driver-daemonset --field-selector " + onNode(n))})
	}
}

func gpuLostAfterUpgrade(x *inventory.Inventory, n *inventory.Node, report reporter) {
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
	report(occurrence{
		Object: n.Object, Path: allocatable, Seen: driverState + "=" + upgradeDone + ", no GPU allocatable",
		Fix: fix.Run(restartPlugin(n)),
	})
}
