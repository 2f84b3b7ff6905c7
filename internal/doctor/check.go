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
	scope    scope
	// Why says what follows from the fault. An occurrence can add to it, or know better.
	Why string
}

// Scope says what the check examines.
func (c Check) Scope() string { return c.scope.of }

// occurrence is one fault that a check has found.
type occurrence struct {
	object *inventory.Object
	// path is the field; field replaces it if the field is known as text.
	path  fieldpath.Path
	field string
	// seen is what the field has.
	seen string
	// severity replaces that of the check, and why its reason; more is added to the reason.
	severity  raydemand.Severity
	why, more string
	fix       fix.Fix
}

func (o occurrence) fieldText() string {
	if o.field != "" {
		return o.field
	}
	return o.path.String()
}

// reporter takes the occurrences that a check finds.
type reporter func(occurrence)

// scope is what a check examines, and the function that examines it.
type scope struct {
	of  string
	run func(x *inventory.Inventory, code string, report reporter)
}

// inputs examines all objects together.
func inputs(examine func(*inventory.Inventory, reporter)) scope {
	return scope{"all objects", func(x *inventory.Inventory, _ string, report reporter) { examine(x, report) }}
}

// groups examines the head group and each worker group.
func groups(examine func(*inventory.Inventory, inventory.Group, reporter)) scope {
	return scope{"groups", func(x *inventory.Inventory, _ string, report reporter) {
		for _, g := range x.Groups {
			examine(x, g, report)
		}
	}}
}

// heads examines each head group.
func heads(examine func(*inventory.Inventory, inventory.Group, reporter)) scope {
	return scope{"head groups", func(x *inventory.Inventory, _ string, report reporter) {
		for _, g := range x.Groups {
			if g.Workers == nil {
				examine(x, g, report)
			}
		}
	}}
}

// workers examines each worker group.
func workers(examine func(*inventory.Inventory, inventory.Group, reporter)) scope {
	return scope{"worker groups", func(x *inventory.Inventory, _ string, report reporter) {
		for _, g := range x.Groups {
			if g.Workers != nil {
				examine(x, g, report)
			}
		}
	}}
}

// gpus examines each GPU resource that a container names, in limits or requests.
func gpus(examine func(*inventory.Inventory, inventory.GPURequest, reporter)) scope {
	return scope{"GPU requests", func(x *inventory.Inventory, _ string, report reporter) {
		for _, g := range x.Groups {
			for _, r := range g.GPURequests() {
				examine(x, r, report)
			}
		}
	}}
}

// clusters examines each RayCluster, also those in a RayJob, RayService or RayCronJob.
func clusters(examine func(*inventory.Inventory, *inventory.Object, reporter)) scope {
	return scope{"RayClusters", func(x *inventory.Inventory, _ string, report reporter) {
		for _, o := range x.Clusters {
			examine(x, o, report)
		}
	}}
}

// nodes examines each node.
func nodes(examine func(*inventory.Inventory, *inventory.Node, reporter)) scope {
	return scope{"nodes", func(x *inventory.Inventory, _ string, report reporter) {
		for i := range x.Nodes {
			examine(x, &x.Nodes[i], report)
		}
	}}
}
