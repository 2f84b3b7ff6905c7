package doctor

import (
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decoded reports what reading a RayCluster found under the code of the check: package kube knows what the operator and
// `ray start` refuse. The codes are those of docs/reference/reasons.md.
func decoded(fixOf func(*Object, raydemand.Finding) fix) scope {
	return func(x *inventory, code string, report reporter) {
		for _, o := range x.Clusters {
			for _, f := range o.Cluster.Findings {
				if f.Code == code && !hasOwnCheck(f) {
					report(occurrence{
						Object: o, Field: fieldIn(o, f.Field), Severity: f.Severity, Seen: f.Seen, Why: f.Why,
						Fix: fixOf(o, f)})
				}
			}
		}
	}
}

// hasOwnCheck reports whether another check finds the same fault and has a patch for it.
func hasOwnCheck(f raydemand.Finding) bool {
	switch {
	case f.Code == nodepool.SpecRefused && (!ofOwnField(f) || strings.Contains(f.Why, "restartPolicy") ||
		strings.Contains(f.Why, "idleTimeoutSeconds") || strings.Contains(f.Why, "RAY_enable_autoscaler_v2")):
		return true
	case f.Code == "pods-refused":
		path, _ := fieldpath.Parse(bracketed(f.Field))
		inLimits := path.Parent().LastKey() == "limits"
		return inLimits && isGPU(gpuinfo.Names{}, path.LastKey())
	}
	return false
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

// pathIn returns the path of a finding's field in the object. It returns false if a key may have its own dots.
func pathIn(o *Object, f raydemand.Finding) (fieldpath.Path, bool) {
	field := fieldIn(o, f.Field)
	path, ok := fieldpath.Parse(field)
	return path, ok && !strings.ContainsAny(field, `/"`)
}

// groupOf returns the worker group that a finding is about; false if it is about none.
func groupOf(o *Object, f raydemand.Finding) (rayGroup, bool) {
	for _, g := range o.groups() {
		if g.Workers != nil && strings.HasPrefix(fieldIn(o, f.Field)+".", g.Value.Path().String()+".") {
			return g, true
		}
	}
	return rayGroup{}, false
}

func byHand(o *Object, f raydemand.Finding) fix { return edit(f.Fix) }

// writing writes a value to the field.
func writing(value any) func(*Object, raydemand.Finding) fix {
	return func(o *Object, f raydemand.Finding) fix {
		if at, ok := pathIn(o, f); ok {
			return set(at, value)
		}
		return byHand(o, f)
	}
}

// removing removes the field, unless it is inside the text of an annotation.
func removing(o *Object, f raydemand.Finding) fix {
	if at, ok := fieldpath.Parse(fieldIn(o, f.Field)); ok {
		return remove(at).Hint(f.Fix)
	}
	return byHand(o, f)
}

func showEvents(o *Object, _ raydemand.Finding) fix {
	command := "kubectl get events -n " + quote(o.Namespace) +
		" --field-selector involvedObject.name=" + quote(o.Name)
	return run(command).Hint("the Events say what to fix")
}

func deletePodsOfGroup(o *Object, f raydemand.Finding) fix {
	group, _, _ := strings.Cut(f.Seen, ":")
	return run(deletePods(o, group, "")).Hint("when they have no work; or add the group again")
}

func deletePodsWithoutReplica(o *Object, f raydemand.Finding) fix {
	g, _ := groupOf(o, f)
	return run(deletePods(o, g.Name, ",!ray.io/worker-group-replica-name")).Hint("when they have no work")
}

func deletePods(o *Object, group, further string) string {
	return "kubectl delete pod -n " + quote(o.Namespace) + " -l " +
		quote("ray.io/cluster="+o.Name+",ray.io/group="+group+further)
}
