// Package check says what a check of the doctor is: a fault with its code, what is examined for it, and what is
// reported. It must not know any check, read files or clients, or make findings of what is reported.
package check

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
	Scope    Scope
	// Why says what follows from the fault. An occurrence can add to it, or know better.
	Why string
}

// New returns a check: one row of a list.
func New(code string, severity raydemand.Severity, scope Scope, why string) Check {
	return Check{Code: code, Severity: severity, Scope: scope, Why: why}
}

// Scope is what a check examines, and the function that examines it.
type Scope struct {
	// Of names what is examined, such as worker groups.
	Of string
	// Run reports the occurrences of a fault. Functions that find the faults of several checks go by the code.
	Run func(x *inventory.Inventory, code string, report Reporter)
}

// Reporter takes the occurrences that a check finds.
type Reporter func(Occurrence)

// Occurrence is one fault that a check has found.
type Occurrence struct {
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

// Inputs examines all objects together.
func Inputs(examine func(*inventory.Inventory, Reporter)) Scope {
	return Scope{Of: "all objects", Run: func(x *inventory.Inventory, _ string, report Reporter) { examine(x, report) }}
}

// Groups examines the head group and each worker group.
func Groups(examine func(*inventory.Inventory, inventory.Group, Reporter)) Scope {
	return Scope{Of: "groups", Run: func(x *inventory.Inventory, _ string, report Reporter) {
		for _, g := range x.Groups {
			examine(x, g, report)
		}
	}}
}

// Workers examines each worker group.
func Workers(examine func(*inventory.Inventory, inventory.Group, Reporter)) Scope {
	return Scope{Of: "worker groups", Run: func(x *inventory.Inventory, _ string, report Reporter) {
		for _, g := range x.Groups {
			if g.Workers != nil {
				examine(x, g, report)
			}
		}
	}}
}
