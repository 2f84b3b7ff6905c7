package nodepool

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about how many GPUs a worker group's pods report to Ray (docs/reference/num-gpus.md).
const (
	// NumGPUsMismatch: a new pod reports a different number of GPUs to Ray than the device plugin assigns to it.
	NumGPUsMismatch = "num-gpus-mismatch"
	// NumGPUsRunning: the newest running Ray node of a group reports a different number than a new pod would.
	NumGPUsRunning = "num-gpus-running-differs"
	// GPUSharesSeveral: a pod requests more than one share of shared devices, which gives it no more than one share.
	GPUSharesSeveral = "gpu-shares-several"
)

// GPUSpec is what a RayCluster's spec alone says about the GPUs of one worker of a group.
type GPUSpec struct {
	// Declared is the number that a person wrote in the group's field resources or in rayStartParams, and DeclaredBy
	// says where (resources.GPU, rayStartParams.num-gpus); nil if there is none, or if it is not a number.
	Declared   *raydemand.Amount
	DeclaredBy string
	// Derived is what is passed to `ray start` as --num-gpus, by the operator or by the container's own command.
	// DerivedBy says where that comes from. It is nil without that flag, or if `ray start` does not accept its value.
	Derived   *raydemand.Amount
	DerivedBy string
	// Limits are the extended resources of the Ray container; Ray does not see those of other containers.
	Limits landing.Quantities
	// Counted are the limits that the operator counts as GPUs, in its order: it passes the first one on. Passed are
	// those that it passes on under another name, as google.com/tpu.
	Counted, Passed []string
	// Unparsed says that the operator cannot parse rayStartParams.resources and passes none of them on.
	Unparsed bool
	// Claims says that the Ray container has DRA claims, which do not give a number.
	Claims bool
	// Field is where a number of GPUs is to be written, relative to the group: rayStartParams.num-gpus or, if the group
	// has the field resources, an entry of that. The operator refuses a spec with both.
	Field string
	// Fixed says why writing it would not change what Ray gets; empty if it would.
	Fixed string
}

// NumGPUs are the three opinions on how many GPUs one worker of a group has, and what its Ray nodes report. Unknown
// numbers are nil, and Sources then says why, if there is anything to say.
type NumGPUs struct {
	// Declared is written in the spec by a person. Derived is passed to `ray start`. Reported is how many GPUs the
	// device plugin assigns to the Ray container on the nodes where a pod fits.
	Declared *raydemand.Amount `json:"declared"`
	Derived  *raydemand.Amount `json:"derived"`
	Reported *raydemand.Amount `json:"reported"`
	// Ray is what the newest running Ray node of the group reports.
	Ray     *raydemand.Amount `json:"ray"`
	Sources NumGPUsSources    `json:"sources"`
	// Mismatch says that Reported is known and a new pod would report a different number.
	Mismatch bool `json:"mismatch"`
}

// NumGPUsSources says where each number of NumGPUs comes from, or why there is none.
type NumGPUsSources struct {
	Declared string `json:"declared"`
	Derived  string `json:"derived"`
	Reported string `json:"reported"`
	Ray      string `json:"ray"`
}

// RayGPUs is what the running Ray nodes of a group report.
type RayGPUs struct {
	// Nodes counts them, and Same those that report the same as the newest.
	Nodes, Same int
	// Newest is what the newest one reports; nil if there is none.
	Newest *raydemand.Amount
}

// NumGPUs puts the opinions on a group side by side. The field Reported must be set for the nodes to have a say.
func (g *WorkerGroup) NumGPUs(ray RayGPUs) NumGPUs {
	n := NumGPUs{
		Declared: g.GPUs.Declared, Derived: g.GPUs.Derived, Ray: ray.Newest,
		Sources: NumGPUsSources{Declared: g.GPUs.DeclaredBy, Derived: g.GPUs.DerivedBy, Reported: "no node is known"},
	}
	if g.Reported != nil {
		n.Reported, n.Sources.Reported = g.Reported.Value, g.Reported.Source
		if n.Reported != nil && g.oneOfInstances() {
			one := raydemand.One
			n.Reported = &one
			n.Sources.Reported += fmt.Sprintf("; %d instances count as 1 GPU by %s", g.MIGInstances(),
				MIGGPUsAnnotation)
		}
	}
	switch {
	case ray.Newest == nil:
	case ray.Same < ray.Nodes:
		n.Sources.Ray = fmt.Sprintf("the newest of %d running Ray nodes, %d of which report another number", ray.Nodes,
			ray.Nodes-ray.Same)
	default:
		n.Sources.Ray = fmt.Sprintf("%d running Ray nodes", ray.Nodes)
	}
	n.Mismatch = n.Reported != nil && g.rayGPUs() != *n.Reported
	return n
}

// rayGPUs is how many GPUs a new pod reports to Ray, as far as its spec says. A missing number counts as zero, because
// a group that starts for GPUs has one.
func (g *WorkerGroup) rayGPUs() raydemand.Amount { return g.Resources[raydemand.GPU] }

// NumGPUsFindings returns what is wrong with a group's numbers and how to fix it. The caller sets Object.
func (g *WorkerGroup) NumGPUsFindings(n NumGPUs) []raydemand.Finding {
	var all []raydemand.Finding
	field := fmt.Sprintf("spec.workerGroupSpecs[%d].", g.Index)
	if n.Mismatch {
		seen := "no number"
		if amount, passed := g.Resources[raydemand.GPU]; passed {
			seen = amount.String()
		}
		all = append(all, raydemand.Finding{Code: NumGPUsMismatch, Severity: raydemand.Warning,
			Field: field + g.GPUs.Field,
			Seen:  fmt.Sprintf("declares %s, the device plugin gives %s", seen, n.Reported),
			Why: fmt.Sprintf("a new worker of group %s has %s (%s) but reports another number to Ray, so Ray places "+
				"tasks with num_gpus by a wrong number; the plan uses %s",
				g.Name, gpusInWords(*n.Reported), n.Sources.Reported, g.plannedNumber()),
			Fix: g.mismatchFix(*n.Reported)})
	}
	if n.Ray != nil && !n.Mismatch && n.Reported != nil && *n.Ray != *n.Reported {
		all = append(all, raydemand.Finding{Code: NumGPUsRunning, Severity: raydemand.Info, Field: field + g.GPUs.Field,
			Seen: fmt.Sprintf("reported %s, the device plugin gives %s", n.Ray, n.Reported),
			Why: "running workers of group " + g.Name + " (" + n.Sources.Ray +
				") keep the number with which they started",
			Fix: "nothing, or delete those pods when they are idle: new pods report the number that the device " +
				"plugin assigns"})
	}
	if g.Reported != nil && g.Reported.Shares > 1 {
		all = append(all, raydemand.Finding{Code: GPUSharesSeveral, Severity: raydemand.Warning,
			Field: field + "template.spec.containers[0].resources.limits",
			Seen:  n.Sources.Reported,
			Why: "several shares are not more of a GPU: with time-slicing they may be of one card, and with " +
				"failRequestsGreaterThanOne, the default of MPS, the kubelet refuses the pod",
			Fix: "request one share"})
	}
	if f, several := g.MIGInstancesFinding(); several {
		all = append(all, f)
	}
	return all
}

// plannedNumber says by which number of GPUs a group whose numbers differ is planned.
func (g *WorkerGroup) plannedNumber() string {
	if g.oneOfInstances() {
		return "1, as the annotation says"
	}
	return "the number that the group declares"
}

// mismatchFix returns the fix of a mismatch.
func (g *WorkerGroup) mismatchFix(reported raydemand.Amount) string {
	if g.GPUs.Fixed != "" {
		return "declare " + reported.String() + ": " + g.GPUs.Fixed
	}
	section, key, _ := strings.Cut(g.GPUs.Field, ".")
	return fmt.Sprintf(`set %s: {%q: "%s"} in the group, or annotate heliostat.dev/num-gpus-sync: when-empty`, section,
		key, reported)
}

func gpusInWords(n raydemand.Amount) string {
	if n == raydemand.One {
		return "1 GPU"
	}
	return n.String() + " GPUs"
}
