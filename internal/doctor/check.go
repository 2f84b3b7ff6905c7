package doctor

import (
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Check is one fault that the doctor finds.
type Check struct {
	// Code names its findings.
	Code     string
	Severity raydemand.Severity
	examine  scope
	// Why says what follows from the fault. An occurrence can add to it, or know better. It is empty if all occurrences
	// do.
	Why string
}

// scope reports the occurrences of a fault in what it examines. Functions that find the faults of several checks go by
// the code.
type scope func(x *inventory, code string, report reporter)

// reporter takes the occurrences that a check finds.
type reporter func(occurrence)

// occurrence is one fault that a check has found.
type occurrence struct {
	by     Check
	Object *Object
	// Path is the field; Field replaces it if the field is known as text.
	Path  fieldpath.Path
	Field string
	// Seen is what the field has.
	Seen string
	// Severity replaces that of the check, and Why its reason; More is added to the reason.
	Severity  raydemand.Severity
	Why, More string
	Fix       fix
}

// said is what a plan, or serve, says about a field of the object. Its fix is a text.
func said(o *Object, at fieldpath.Path, f raydemand.Finding) occurrence {
	return occurrence{Object: o, Path: at, Seen: f.Seen, Why: f.Why, Fix: edit(o, f.Fix)}
}

// shows is the value of a field.
func shows(o *Object, v fieldpath.Value, f fix) occurrence {
	return occurrence{Object: o, Path: v.Path(), Seen: v.String(), Fix: f}
}

// inputs examines all objects together.
func inputs(examine func(*inventory, reporter)) scope {
	return func(x *inventory, _ string, report reporter) { examine(x, report) }
}

// each examines every one of a list.
func each[T any](
	list func(*inventory) []T,
) func(examine func(*inventory, T, reporter)) scope {
	return func(examine func(*inventory, T, reporter)) scope {
		return func(x *inventory, _ string, report reporter) {
			for _, one := range list(x) {
				examine(x, one, report)
			}
		}
	}
}

var (
	// groups examines the head group and each worker group; heads and workers examine only these.
	groups  = each(func(x *inventory) []rayGroup { return x.Groups })
	heads   = each(func(x *inventory) []rayGroup { return x.heads })
	workers = each(func(x *inventory) []rayGroup { return x.workers })
	// gpus examines each GPU resource that a container names, in limits or requests.
	gpus = each((*inventory).gpuRequests)
	// clusters examines each RayCluster, also those in a RayJob, RayService or RayCronJob.
	clusters = each(func(x *inventory) []*Object { return x.Clusters })
	nodes    = each(func(x *inventory) []*Object { return x.Nodes })
	// nodePools examines each of Karpenter's NodePools, capacityPolicies each CapacityPolicy.
	nodePools        = each((*inventory).nodePools)
	capacityPolicies = each((*inventory).policies)
)
