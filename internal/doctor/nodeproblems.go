package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodeProblem reports what reading a node's GPUs found under the code of the check, at a field of the node. The codes
// are those of docs/reference/gpus.md; problems that change plans have the reason that plans give. A cordon alone is no
// fault. What a foreign device is depends on its name, so one node stands for all.
func nodeProblem(at fieldpath.Path, command func(*nodeObject) string) scope {
	return func(x *inventory, code string, report reporter) {
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
						Object: n.Object, Path: path, Seen: p.Message, Why: planned.Why, Fix: run(command(n)),
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
func restartPlugin(n *nodeObject) string {
	return "kubectl delete pod -A -l app=nvidia-device-plugin-daemonset --field-selector " + onNode(n) +
		comment("with the plugin's Helm chart: -l app.kubernetes.io/name=nvidia-device-plugin")
}

func onNode(n *nodeObject) string { return quote("spec.nodeName=" + n.Name) }

func cordon(n *nodeObject) string {
	return "kubectl cordon " + quote(n.Name) +
		comment("running pods continue; drain and replace the node when they are done")
}

// showPlugin shows whether a device plugin runs there: installing one and repairing one are different things.
func showPlugin(n *nodeObject) string {
	return "kubectl get pod -A -o wide --field-selector " + onNode(n) +
		comment("must show a device plugin; install it, or see its log. If Dynamic Resource Allocation allocates "+
			"the GPUs, let the doctor read the ResourceSlices too")
}

func deployForContainers(n *nodeObject) string {
	return kubectl(n.Object, "label", "--overwrite", "nvidia.com/gpu.workload.config=container") +
		comment("if pods should use the GPUs; virtual machines then cannot")
}

func deployPlugin(n *nodeObject) string {
	label := "nvidia.com/gpu.deploy.device-plugin=true"
	if n.Node.GPUs.Labels[gkeNoPlugin] != "" {
		label = gkeNoPlugin + "-"
	}
	return kubectl(n.Object, "label", label) + comment("if pods should request GPUs as resources")
}

const gkeNoPlugin = "gke-no-default-nvidia-gpu-device-plugin"

func showMIGManager(*nodeObject) string {
	return "kubectl logs -n gpu-operator -l app=nvidia-mig-manager --tail=50" +
		comment("pods that use the GPUs delay the change")
}

func applyEvenLayout(n *nodeObject) string {
	return kubectl(n.Object, "label", "--overwrite", "nvidia.com/mig.config="+evenLayout(n))
}

// evenLayout returns the layout of mig-parted that has one profile on all cards: the smallest one of the product.
func evenLayout(n *nodeObject) string {
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

func restartFeatureDiscovery(*nodeObject) string {
	return "kubectl rollout restart -n gpu-operator daemonset/gpu-feature-discovery" +
		comment("after you update it")
}

func editHAMi(*nodeObject) string {
	return "kubectl edit configmap hami-device-plugin -n kube-system" + comment("set devicememoryscaling to 1")
}

func restartVolcanoPlugin(n *nodeObject) string {
	return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=volcano-device-plugin" +
		" --field-selector " + onNode(n)
}

func restartHAMi(n *nodeObject) string {
	return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=hami-device-plugin" +
		" --field-selector " + onNode(n)
}

// restartRegister restarts the device plugin that writes the register of cards.
func restartRegister(n *nodeObject) string {
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

func showAscend(n *nodeObject) string {
	return showNode(n, "and bound the group's maxReplicas by what its cards hold, if its pods take more than a "+
		"share each")
}

func removeRegister(n *nodeObject) string {
	return kubectl(n.Object, "annotate", "hami.io/node-nvidia-register-") +
		comment("if HAMi is gone; otherwise keep NVIDIA's device plugin away from the node")
}

func uncordonCard(n *nodeObject) string {
	return kubectl(n.Object, "annotate", "hami.io/device-cordon-") +
		comment("when new pods may use all cards again")
}

func showMemory(n *nodeObject) string {
	return showNode(n, "and compare the labels with what nvidia-smi or amd-smi shows there; if a unit is a part of a "+
		"card, this is as it should be")
}

func showFactor(n *nodeObject) string {
	return showNode(n, "and compare the memory factor of the device plugin with that of the scheduler")
}

func showAgent(n *nodeObject) string {
	return "kubectl get pod -A -o wide -l app=heliostat-agent --field-selector " + onNode(n) +
		comment("shows the agent; if there is none: "+
			"kubectl annotate node "+quote(n.Name)+" heliostat.dev/gpus-")
}

func describeNode(n *nodeObject) string {
	return "kubectl describe node " + quote(n.Name) + comment("its conditions say what is wrong")
}

func showLabels(n *nodeObject) string { return showNode(n, "and fix what writes the label") }

func labelSharing(n *nodeObject) string {
	return showNode(n, "and run GPU feature discovery, which labels shared and partitioned cards, "+
		"or name the kind with --resource NAME=KIND")
}

func showAmounts(n *nodeObject) string {
	return showNode(n, "and fix what announces it: a device plugin, or whoever patched the status by hand")
}

func showResources(n *nodeObject) string {
	return showNode(n, "shows what announces it; "+
		"declare what it is to doctor, nodepools and serve with --resource NAME=KIND")
}

func showAllocations(*nodeObject) string {
	return "kubectl get allocationclaims -A" + comment("shows the instances that pods have")
}

func showNames(n *nodeObject) string {
	return showNode(n, "and restart the device plugin and the labeller; names that nothing announces any more go when "+
		"the kubelet restarts")
}

// showNode prints the node; a comment says what to do then.
func showNode(n *nodeObject, then string) string {
	return kubectl(n.Object, "get", "-o", "yaml") + comment(then)
}

func gpuNodesCordoned(x *inventory, report reporter) {
	var names []string
	var first *Object
	for _, n := range x.Nodes {
		if !n.HasGPUs() {
			continue
		}
		if !n.Node.GPUs.Unschedulable {
			return
		}
		names = append(names, quote(n.Name))
		if first == nil {
			first = n.Object
		}
	}
	if first != nil {
		report(occurrence{Object: first, Path: fieldpath.NewPath("spec", "unschedulable"),
			Seen: fmt.Sprintf("true on %d of %d nodes with GPUs", len(names), len(names)),
			Fix:  run("kubectl uncordon " + strings.Join(names, " "))})
	}
}

// The GPU operator's label for the update of a node's driver, and two of its values.
const (
	driverState   = "nvidia.com/gpu-driver-upgrade-state"
	upgradeDone   = "upgrade-done"
	upgradeFailed = "upgrade-failed"
)

var driverStateLabel = fieldpath.NewPath("metadata", "labels", driverState)

func gpuDriverUpgrading(_ *inventory, n *nodeObject, report reporter) {
	state := n.Node.GPUs.Labels[driverState]
	if state != "" && state != upgradeDone && state != upgradeFailed {
		report(occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: run(kubectl(n.Object, "get", "-L", driverState, "-w")).Hint("wait for " + upgradeDone)})
	}
}

func gpuDriverUpgradeFailed(_ *inventory, n *nodeObject, report reporter) {
	if state := n.Node.GPUs.Labels[driverState]; state == upgradeFailed {
		report(occurrence{Object: n.Object, Path: driverStateLabel, Seen: state,
			Fix: run("kubectl delete pod -A -l app=nvidia-driver-daemonset --field-selector " + onNode(n))})
	}
}

func gpuLostAfterUpgrade(x *inventory, n *nodeObject, report reporter) {
	gpus := n.Node.GPUs
	hasNone := gpus.Labels["nvidia.com/gpu.present"] == "false"
	if gpus.Labels[driverState] != upgradeDone || gpus.Allocatable == nil || hasNone ||
		len(gpus.Devices) > 0 {
		return
	}
	for name, units := range gpus.Allocatable {
		if units > 0 && isGPU(x.Input.Reader.Names, name) {
			return
		}
	}
	report(occurrence{
		Object: n.Object, Path: allocatable, Seen: driverState + "=" + upgradeDone + ", no GPU allocatable",
		Fix: run(restartPlugin(n)),
	})
}
