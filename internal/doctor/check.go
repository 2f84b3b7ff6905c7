package doctor

import (
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
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
type scope func(x *inventory.Inventory, code string, report reporter)

// reporter takes the occurrences that a check finds.
type reporter func(occurrence)

// occurrence is one fault that a check has found.
type occurrence struct {
	Object *inventory.Object
	// Path is the field; Field replaces it if the field is known as text.
	Path  fieldpath.Path
	Field string
	// Seen is what the field has.
	Seen string
	// Severity replaces that of the check, and Why its reason; More is added to the reason.
	Severity  raydemand.Severity
	Why, More string
	Fix       fix.Fix
}

// inputs examines all objects together.
func inputs(examine func(*inventory.Inventory, reporter)) scope {
	return func(x *inventory.Inventory, _ string, report reporter) { examine(x, report) }
}

// each examines every one of a list.
func each[T any](
	list func(*inventory.Inventory) []T,
) func(examine func(*inventory.Inventory, T, reporter)) scope {
	return func(examine func(*inventory.Inventory, T, reporter)) scope {
		return func(x *inventory.Inventory, _ string, report reporter) {
			for _, one := range list(x) {
				examine(x, one, report)
			}
		}
	}
}

var (
	// groups examines the head group and each worker group; heads and workers examine only these.
	groups  = each(func(x *inventory.Inventory) []inventory.Group { return x.Groups })
	heads   = each((*inventory.Inventory).Heads)
	workers = each((*inventory.Inventory).Workers)
	// gpus examines each GPU resource that a container names, in limits or requests.
	gpus = each((*inventory.Inventory).GPURequests)
	// clusters examines each RayCluster, also those in a RayJob, RayService or RayCronJob.
	clusters = each(func(x *inventory.Inventory) []*inventory.Object { return x.Clusters })
	nodes    = each(func(x *inventory.Inventory) []*inventory.Node { return x.Nodes })
	// nodePools examines each of Karpenter's NodePools, policies each CapacityPolicy.
	nodePools = each((*inventory.Inventory).NodePools)
	policies  = each((*inventory.Inventory).Policies)
)
