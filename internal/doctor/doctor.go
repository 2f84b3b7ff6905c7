// Package doctor finds what is wrong with RayClusters and with the Kubernetes cluster under them, and says why it
// matters and which command fixes it. Objects of an API server or of manifests go in, findings come out. It is pure,
// and it does not guess: if the objects do not prove a fault, there is no finding.
//
// Read decodes objects as serve does. checks.go lists the checks; their functions are in files by topic. They ask an
// inventory for the objects, and answer with a fix: a kubectl command, or what to change in an object.
package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Finding is a fault, or something that you should know.
type Finding struct {
	// Code is stable; the texts are for people and may change.
	Code     string             `json:"code"`
	Severity raydemand.Severity `json:"severity"`
	// Object is Kind/namespace/name, or Kind/name for a kind without namespaces.
	Object string `json:"object"`
	// Field is a path such as spec.workerGroupSpecs[1].replicas; empty if the fault is in more than one field.
	Field string `json:"field"`
	// Seen is what the field has, Why what follows from it.
	Seen string `json:"seen"`
	Why  string `json:"why"`
	// Fix is a shell command that works as printed. A comment behind # says what the command leaves open.
	Fix string `json:"fix"`
	// Docs is the place in the documentation that says more.
	Docs string `json:"docs"`
}

// docsPage has an anchor for each code.
const docsPage = "docs/reference/doctor.md#"

// Examine runs every check. Findings are sorted by object, then by severity, code and field.
func Examine(input Input) []Finding {
	x := newInventory(input)
	var all []occurrence
	for _, by := range Checks() {
		by.examine(x, by.Code, func(o occurrence) {
			o.by = by
			all = append(all, o)
		})
	}
	all = withoutDuplicates(all)
	findings := []Finding{}
	for _, c := range all {
		findings = append(findings, c.finding())
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), cmp.Compare(rank(a.Severity), rank(b.Severity)),
			strings.Compare(a.Code, b.Code), strings.Compare(a.Field, b.Field))
	})
	return slices.Compact(findings)
}

// withoutDuplicates drops the occurrences that compare num-gpus with nodes, if another check shows by the spec alone
// what is wrong in the same group.
func withoutDuplicates(all []occurrence) []occurrence {
	byObject := map[*Object][]occurrence{}
	for _, c := range all {
		byObject[c.Object] = append(byObject[c.Object], c)
	}
	return slices.DeleteFunc(all, func(c occurrence) bool {
		byNodes, group := c.by.Code == nodepool.NumGPUsMismatch, c.Path.Parent().Parent().String()+"."
		return byNodes && slices.ContainsFunc(byObject[c.Object], func(other occurrence) bool {
			return explainsNumGPUs(other.by.Code) && strings.HasPrefix(other.Path.String()+".", group)
		})
	})
}

func (c occurrence) finding() Finding {
	why := cmp.Or(c.Why, c.by.Why)
	if c.More != "" {
		why += "; " + c.More
	}
	return Finding{Code: c.by.Code, Severity: cmp.Or(c.Severity, c.by.Severity),
		Object: c.Object.String(), Field: cmp.Or(c.Field, c.Path.String()), Seen: c.Seen,
		Why: why, Fix: c.Fix.text(c.Object), Docs: docsPage + c.by.Code}
}

func rank(severity raydemand.Severity) int {
	return slices.Index([]raydemand.Severity{raydemand.Error, raydemand.Warning, raydemand.Info}, severity)
}

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
func said(at fieldpath.Path, f raydemand.Finding) occurrence {
	return occurrence{Path: at, Seen: f.Seen, Why: f.Why, Fix: edit(f.Fix)}
}

// shows is the value of a field.
func shows(v fieldpath.Value, f fix) occurrence {
	return occurrence{Path: v.Path(), Seen: v.String(), Fix: f}
}

// inputs examines all objects together.
func inputs(examine func(*inventory, reporter)) scope {
	return func(x *inventory, _ string, report reporter) { examine(x, report) }
}

// each examines every one of a list. Without another object, an occurrence is about the one that it belongs to.
func each[T interface{ object() *Object }](
	list func(*inventory) []T,
) func(examine func(*inventory, T, reporter)) scope {
	return func(examine func(*inventory, T, reporter)) scope {
		return func(x *inventory, _ string, report reporter) {
			for _, one := range list(x) {
				examine(x, one, func(found occurrence) {
					found.Object = cmp.Or(found.Object, one.object())
					report(found)
				})
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
)

// ofKind examines each object of a kind.
func ofKind(kind string, examine func(*inventory, *Object, reporter)) scope {
	return each(func(x *inventory) []*Object { return x.ByKind[kind] })(examine)
}
