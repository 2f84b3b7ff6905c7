package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decoded reports what reading a RayCluster found under the code of the check: package kube knows what the operator and
// `ray start` refuse. The codes are those of docs/reference/reasons.md. command shows what the fix is about.
func decoded(command func(*Object) string) scope {
	return func(x *inventory, code string, report reporter) {
		for _, o := range x.Clusters {
			for _, f := range o.Cluster.Findings {
				if f.Code == code && !hasOwnCheck(o, f) && !x.initOff(f) {
					report(occurrence{
						Object: o, Field: fieldIn(o, f.Field), Severity: f.Severity, Seen: f.Seen, Why: f.Why,
						Fix: run(command(o)).Hint(f.Fix)})
				}
			}
		}
	}
}

// hasOwnCheck reports whether another check finds the same fault, and as an error too.
func hasOwnCheck(o *Object, f raydemand.Finding) bool {
	switch {
	case f.Code == nodepool.SpecRefused:
		return !ofOwnField(f) || strings.Contains(f.Why, "restartPolicy") || o.versionRefused(f.Why)
	case f.Code == "pods-refused":
		path, _ := fieldpath.Parse(bracketed(f.Field))
		inLimits := path.Parent().LastKey() == "limits"
		return inLimits && isGPU(gpuinfo.Names{}, path.LastKey())
	}
	return false
}

// initOff reports whether a finding is about an init container that the operator's Deployment turns off.
func (x *inventory) initOff(f raydemand.Finding) bool {
	if f.Code != limitRangeRefuses || !strings.Contains(f.Why, decode.UnlessInitOff) {
		return false
	}
	_, operators := x.programs(operatorImage)
	return slices.ContainsFunc(operators, func(c fieldpath.Value) bool {
		return strings.EqualFold(variableOf(c, "ENABLE_INIT_CONTAINER_INJECTION"), "false")
	})
}

// fieldIn returns where a field of the RayCluster is in this object: a RayJob, a RayService and a RayCronJob have its
// spec below another key.
func fieldIn(o *Object, field string) string {
	if rest, inSpec := strings.CutPrefix(field, "spec."); inSpec {
		field = strings.Join(o.Spec, ".") + "." + rest
	}
	return bracketed(field)
}

// bracketed writes a key of a map, which may have dots, in brackets.
func bracketed(field string) string {
	for _, before := range []string{"metadata.annotations", ".limits", ".requests", ".nodeSelector", ".labels"} {
		above, key, found := strings.Cut(field, before+".")
		if found && strings.ContainsAny(key, "./") {
			path, _ := fieldpath.Parse(above + before)
			key, inside, hasInside := strings.Cut(key, ": ") // a field inside the text of an annotation
			if hasInside {
				inside = ": " + inside
			}
			return path.Key(key).String() + inside
		}
	}
	return field
}

func editing(o *Object) string { return kubectl(o, "edit") }

func describing(o *Object) string { return kubectl(o, "describe") }

func listingPods(o *Object) string {
	return "kubectl get pod -n " + quote(o.Namespace) + " -l " + quote("ray.io/cluster="+o.Name)
}
