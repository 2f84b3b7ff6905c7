package doctor

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// nodeProblem reports what reading a node's GPUs found under the code of the check, at a field of the node. The codes
// are those of docs/reference/gpus.md; problems that change plans have the reason that plans give. A cordon alone is no
// fault.
func nodeProblem(at fieldpath.Path, command string) scope {
	return func(x *inventory, code string, report reporter) {
		for _, n := range x.Nodes {
			for _, p := range n.Node.Fit.GPUs.Problems {
				if string(p.Code) == code {
					path := at
					if p.Annotation != "" {
						path = annotations.Key(p.Annotation)
					}
					planned, _ := landing.NodeProblem(n.Name, p)
					command := command
					if command == asPlanned {
						command += planned.Fix
					}
					report(occurrence{
						Object: n, Path: path, Seen: p.Message, Why: planned.Why, Fix: onNode(n, command)})
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

// Commands about nodes. $NODE is the name of the node, and $THERE selects its pods.
const (
	getNode = "kubectl get node $NODE -o yaml  # "
	// asPlanned has the fix that plans report.
	asPlanned = getNode

	restartPlugin = "kubectl delete pod -A -l app=nvidia-device-plugin-daemonset $THERE  # with the plugin's Helm " +
		"chart: -l app.kubernetes.io/name=nvidia-device-plugin"
	// showPlugin is for both cases: no device plugin is installed, and one is broken.
	showPlugin = "kubectl get pod -A -o wide $THERE  # must show a device plugin; install it, or see its log. If " +
		"Dynamic Resource Allocation allocates the GPUs, let the doctor read the ResourceSlices too"
	deployForContainers = "kubectl label node $NODE --overwrite nvidia.com/gpu.workload.config=container  # if pods " +
		"should use the GPUs; virtual machines then cannot"
	showMIGManager = "kubectl logs -n gpu-operator -l app=nvidia-mig-manager --tail=50  # pods that use the GPUs " +
		"delay the change"
	evenLayout = "kubectl label node $NODE --overwrite nvidia.com/mig.config=all-disabled  # or a layout of " +
		"mig-parted with one profile, such as all-1g.10gb"
	restartFeatureDiscovery = "kubectl rollout restart -n gpu-operator daemonset/gpu-feature-discovery  # after you " +
		"update it"
	restartDriver = "kubectl delete pod -A -l app=nvidia-driver-daemonset $THERE"

	deployPlugin = "kubectl label node $NODE nvidia.com/gpu.deploy.device-plugin=true  # if pods should request GPUs " +
		"as resources; on GKE: gke-no-default-nvidia-gpu-device-plugin-"
	cordon       = "kubectl cordon $NODE  # running pods continue; drain and replace the node when they are done"
	describeNode = "kubectl describe node $NODE  # its conditions say what is wrong"

	editHAMi     = "kubectl edit configmap hami-device-plugin -n kube-system  # set devicememoryscaling to 1"
	uncordonCard = "kubectl annotate node $NODE hami.io/device-cordon-  # when new pods may use all cards again"

	showAgent = "kubectl get pod -A -o wide -l app=heliostat-agent $THERE  # shows the agent; if there is none: " +
		"kubectl annotate node $NODE heliostat.dev/gpus-"
	showAmounts = getNode + "and fix what announces it: a device plugin, or whoever patched the status by hand"
	showAscend  = getNode + "and bound the group's maxReplicas by what its cards hold, if its pods take more " +
		"than a share each"
	showLabels    = getNode + "and fix what writes the label"
	showResources = getNode + "shows what announces it; declare what it is to doctor, nodepools and serve with " +
		"--resource NAME=KIND"
)

// onNode writes a command for a node.
func onNode(n *Object, command string) fix {
	there := "--field-selector " + quote("spec.nodeName="+n.Name)
	return run(strings.NewReplacer("$NODE", quote(n.Name), "$THERE", there).Replace(command))
}

func gpuNodesCordoned(x *inventory, report reporter) {
	var names []string
	var first *Object
	for _, n := range x.Nodes {
		if !n.hasGPUs() {
			continue
		}
		if !n.Node.GPUs.Unschedulable {
			return
		}
		names = append(names, quote(n.Name))
		if first == nil {
			first = n
		}
	}
	if first != nil {
		report(occurrence{Object: first, Path: fieldpath.NewPath("spec", "unschedulable"),
			Seen: fmt.Sprintf("true on %d of %d nodes with GPUs", len(names), len(names)),
			Fix:  run("kubectl uncordon " + strings.Join(names, " "))})
	}
}

// driverState is the GPU operator's label for the update of a node's driver.
const driverState = "nvidia.com/gpu-driver-upgrade-state"

func gpuDriverUpgradeFailed(_ *inventory, n *Object, report reporter) {
	if state := n.Node.GPUs.Labels[driverState]; state == "upgrade-failed" {
		report(occurrence{Path: nodeLabels.Key(driverState), Seen: state, Fix: onNode(n, restartDriver)})
	}
}

// tolerationMissing reports taints to groups that request GPUs or other accelerators: a group without them may have
// nodes elsewhere, and taints of nodes with devices are there to keep it on those.
func tolerationMissing(x *inventory, g rayGroup, report reporter) {
	blocking := x.blockedBy(g)
	if len(blocking.Taints) == 0 || !g.requestsDevices() {
		return
	}
	list := g.template().Get("tolerations")
	var changes []change
	for i, taint := range blocking.Taints {
		toleration := map[string]any{"key": taint.Key, "operator": "Exists", "effect": taint.Effect}
		changes = append(changes, change{list.Path().Index(len(list.Items()) + i), toleration})
	}
	report(occurrence{Path: list.Path(), Seen: fmt.Sprintf("taint %s on node %s", blocking.Taints[0], blocking.Node),
		Fix: patch(changes...)})
}

// groupNoNode reports what plans report. If taints are the only reason, tolerationMissing has a patch.
func groupNoNode(x *inventory, g rayGroup, report reporter) {
	if len(x.blockedBy(g).Taints) > 0 && g.requestsDevices() {
		return
	}
	if f, none := x.noNode(g); none {
		report(occurrence{Path: g.template().Path(), Severity: f.Severity, Seen: f.Seen, Why: f.Why, Fix: edit(f.Fix)})
	}
}

// mostMaximum bounds what is compared: nobody means a larger maxReplicas as a number of nodes.
const mostMaximum = 100_000

func nodeMaximumBelowOurs(x *inventory, g rayGroup, report reporter) {
	most, list, known := mostPods(x, g)
	hosts := max(1, g.Workers.NumOfHosts)
	pods := int64(g.Workers.Max) * int64(hosts)
	if !known || g.Workers.Max <= 0 || g.Workers.Max > mostMaximum || hosts > 1000 || pods <= most {
		return
	}
	at := g.Path("maxReplicas")
	patch := set(at, max(int64(g.Workers.Min), most/int64(hosts)))
	report(occurrence{Path: at, Fix: patch.Hint("or raise the maximum of the node pool"),
		Seen: fmt.Sprintf("maxReplicas %d, but the node pools have room for at most %d pods: %s", g.Workers.Max, most,
			strings.Join(list, ", "))})
}

// mostPods returns how many pods of the group all pools on whose nodes they fit may ever hold, were they empty, and
// which pools these are. It returns false if one of them is not bounded: a pool without a known ceiling may grow.
func mostPods(x *inventory, g rayGroup) (most int64, list []string, known bool) {
	for _, pool := range x.poolsOf(g) {
		room, bounded := pool.Most()
		if !bounded {
			return 0, nil, false
		}
		most += room
		if pool.Pool == "" {
			list = append(list, "nodes without a pool, of which there will be no more")
			continue
		}
		list = append(list, pool.Pool)
	}
	return most, list, len(list) > 0
}
