package doctor

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nodeProblems are what reading a node's GPUs finds, under the codes of docs/reference/gpus.md. A cordon alone is no fault.
var nodeProblems = []Check{
	problem(nodegpu.DevicesMissing, raydemand.Error, "a device that the plugin gave up stays out until the plugin restarts, even when its cause is gone", restartPlugin),
	problem(nodegpu.NothingAnnounced, raydemand.Error, "no pod that asks for a GPU can land there", restartPlugin),
	problem(nodegpu.NoDevicePlugin, raydemand.Info, "pods that ask for a GPU resource cannot land there", func(n *examNode) string {
		return n.kubectl("label", "nvidia.com/gpu.deploy.device-plugin=true") + comment("if GPUs shall be had as resources")
	}),
	problem(nodegpu.MIGChanging, raydemand.Warning, "until it is done nothing that the node announces of its GPUs is to be trusted", func(n *examNode) string {
		return "kubectl logs -n gpu-operator -l app=nvidia-mig-manager --tail=50" + comment("pods that use the GPUs hold the change up")
	}),
	problem(nodegpu.MIGInvalid, raydemand.Error, "under the single strategy all cards need one common profile; nothing is announced", func(n *examNode) string {
		return n.kubectl("label", "--overwrite", "nvidia.com/mig.config="+n.evenLayout())
	}),
	problem(nodegpu.ProfileMismatch, raydemand.Info, "feature discovery and device plugin are of different releases; the resource counts", func(n *examNode) string {
		return "kubectl rollout restart -n gpu-operator daemonset/gpu-feature-discovery" + comment("after an update of it")
	}),
	problem(nodegpu.ProfileUnknown, raydemand.Warning, "the card has no such profile, so what a unit is cannot be known", restartPlugin),
	problem(nodegpu.TooManyUnits, raydemand.Error, "a resource stayed behind after partitioning: pods land there and find no device", restartPlugin),
	problem(nodegpu.MemoryOvercommitted, raydemand.Warning, "workers that use the memory they were given end with out-of-memory errors", func(n *examNode) string {
		return "kubectl edit configmap hami-device-plugin -n kube-system" + comment("set devicememoryscaling to 1")
	}),
	problem(nodegpu.MemoryMissing, raydemand.Error, "a request for memory can never fit", func(n *examNode) string {
		return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=volcano-device-plugin --field-selector " + quote("spec.nodeName="+n.Name)
	}),
	problem(nodegpu.AgentSilent, raydemand.Error, "the scheduler takes the node's devices for gone", func(n *examNode) string {
		return "kubectl delete pod -n kube-system -l app.kubernetes.io/component=hami-device-plugin --field-selector " + quote("spec.nodeName="+n.Name)
	}),
	problem(nodegpu.AgentOutdated, raydemand.Warning, "the cards' layout and health are planned as if no agent had told them", func(n *examNode) string {
		return "kubectl get pod -A -o wide -l app=heliostat-agent --field-selector " + quote("spec.nodeName="+n.Name) +
			comment("shows the agent; without one: kubectl annotate node "+quote(n.Name)+" heliostat.dev/gpus-")
	}),
	problem(nodegpu.DeviceUnhealthy, raydemand.Error, "no share of the card is handed out", (*examNode).cordon),
	problem(nodegpu.ConditionBad, raydemand.Error, "the agent that watches the hardware says that work there fails", (*examNode).cordon),
	problem(nodegpu.NotReady, raydemand.Warning, "no pod is scheduled there, and pods on it may be lost", func(n *examNode) string {
		return "kubectl describe node " + quote(n.Name) + comment("its conditions say what is wrong")
	}),
	problem(nodegpu.LabelUnreadable, raydemand.Warning, "what the label should tell is not known", func(n *examNode) string {
		return n.kubectl("get", "-o", "yaml") + comment("and mend what writes the label")
	}),
	problem(nodegpu.AmountUnreadable, raydemand.Error, "pods that ask for it cannot be placed by it, and it is planned as not announced", func(n *examNode) string {
		return n.kubectl("get", "-o", "yaml") + comment("and mend what announces it: a device plugin, or who patched the status by hand")
	}),
	problem(nodegpu.ResourceNotKnown, raydemand.Warning, "the name speaks of GPUs and stands in no table, so nobody knows what a unit of it is", func(n *examNode) string {
		return n.kubectl("get", "-o", "yaml") + comment("shows who announces it; tell doctor, nodepools and serve what it is with --resource NAME=KIND")
	}),
}

func problem(code nodegpu.ProblemCode, severity raydemand.Severity, why string, fix func(*examNode) string) Check {
	return Check{Code: string(code), Severity: severity, Why: why, look: perNode(func(_ *exam, n *examNode, tell func(sight)) {
		for _, p := range n.gpus.Problems {
			if p.Code == code {
				tell(sight{of: n.Object, at: problemField[code], seen: p.Message, fix: run(fix(n))})
			}
		}
	})}
}

// problemField is where the problem shows, for those with one place.
var problemField = map[nodegpu.ProblemCode]place{
	nodegpu.DevicesMissing:   {"status", "allocatable"},
	nodegpu.NothingAnnounced: {"status", "allocatable"},
	nodegpu.TooManyUnits:     {"status", "allocatable"},
	nodegpu.MemoryMissing:    {"status", "allocatable"},
	nodegpu.ResourceNotKnown: {"status", "allocatable"},
	nodegpu.AmountUnreadable: {"status", "allocatable"},
	nodegpu.ProfileUnknown:   {"status", "allocatable"},
	nodegpu.ConditionBad:     {"status", "conditions"},
	nodegpu.NotReady:         {"status", "conditions"},
	nodegpu.MIGChanging:      {"metadata", "labels", "nvidia.com/mig.config.state"},
	nodegpu.MIGInvalid:       {"metadata", "labels", "nvidia.com/gpu.product"},
	nodegpu.ProfileMismatch:  {"metadata", "labels"},
	nodegpu.NoDevicePlugin:   {"metadata", "labels", "nvidia.com/gpu.deploy.device-plugin"},
	nodegpu.LabelUnreadable:  {"metadata", "labels"},
	nodegpu.AgentOutdated:    {"metadata", "annotations", nodegpu.AgentAnnotation},
}

// restartPlugin makes NVIDIA's device plugin look at the devices anew.
func restartPlugin(n *examNode) string {
	return "kubectl delete pod -A -l app=nvidia-device-plugin-daemonset --field-selector " + quote("spec.nodeName="+n.Name) +
		comment("with the plugin's Helm chart: -l app.kubernetes.io/name=nvidia-device-plugin")
}

func (n *examNode) cordon() string {
	return "kubectl cordon " + quote(n.Name) + comment("pods that run go on; drain and replace the node when they are done")
}
