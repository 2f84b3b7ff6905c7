package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// read are checks that reading a RayCluster makes by itself: package kube finds what the operator and `ray start` would refuse. Their codes
// are those of docs/reference/reasons.md. What a check of another family says better is left to it.
var read = []Check{
	passed("field-unreadable", raydemand.Error, "the operator cannot decode the object", edited),
	passed("group-unnamed", raydemand.Error, "a group without a name has no pods that could be found", func(o *Object, f raydemand.Finding) remedy {
		if at, ok := placeOf(o.path(f.Field)); ok {
			return o.patch(o.set(at, "workers"))
		}
		return o.edit(f.Fix)
	}),
	passed("quantity-ignored", raydemand.Warning, "the operator skips an entry of the group's resources that is no quantity", edited),
	passed("pods-refused", raydemand.Error, "the API server refuses every pod of the group", edited),
	passed("ray-start-fails", raydemand.Error, "every pod of the group ends at once, and is started again for ever", func(o *Object, f raydemand.Finding) remedy {
		for _, g := range groupsOf(o, gpuinfo.Names{}) {
			v := g.get("rayStartParams", "resources")
			if g.at.String() == o.path(f.Field) && v.has() {
				if right, ok := g.startable(v); ok {
					return right
				}
			}
		}
		return edited(o, f)
	}),
	passed("start-command-unknown", raydemand.Warning, "what the group's pods announce is unknown until one of them has joined Ray", edited),
	passed("environment-unknown", raydemand.Warning, "a variable that decides comes from where Heliostat does not read", edited),
	passed(nodepool.SpecRefused, raydemand.Error, "the operator refuses the spec and carries nothing out for any group (docs/reference/facts.md#refused-spec)",
		func(o *Object, f raydemand.Finding) remedy {
			at, ok := placeOf(o.path(f.Field))
			if ok && (strings.Contains(f.Field, ".rayStartParams.") || strings.HasSuffix(f.Field, ".suspend")) {
				return o.patch(remove(at))
			}
			return edited(o, f)
		}),
	passed("annotation-unreadable", raydemand.Error, "Heliostat cannot read it, and takes it in the sense that changes least", func(o *Object, f raydemand.Finding) remedy {
		if v := o.root().get("metadata", "annotations", syncAnnotation); v.has() && strings.HasSuffix(f.Field, syncAnnotation) {
			return o.patch(op{Op: "replace", At: v.at, Value: "report"})
		}
		return edited(o, f)
	}),
	passed("delete-list-foreign", raydemand.Error, "the operator deletes whatever the list names, and an empty name stops the group for ever", func(o *Object, f raydemand.Finding) remedy {
		if at, ok := placeOf(o.path(f.Field)); ok {
			return o.patch(op{Op: "replace", At: at, Value: []string{}})
		}
		return edited(o, f)
	}),
	passed("worker-pods-fail", raydemand.Error, "the operator works through the groups in order and stops at this one; those behind it get no pods", func(o *Object, _ raydemand.Finding) remedy {
		return run("kubectl get events -n " + quote(o.Namespace) + " --field-selector involvedObject.name=" + quote(o.Name)).hint("they say what to mend")
	}),
	passed("group-removed", raydemand.Warning, "nobody deletes pods of a group that is gone from the spec: they hold their GPUs", func(o *Object, f raydemand.Finding) remedy {
		name, _, _ := strings.Cut(f.Seen, ":")
		return run("kubectl delete pod -n " + quote(o.Namespace) + " -l " + quote("ray.io/cluster="+o.Name+",ray.io/group="+name)).
			hint("once they have no work; or add the group again")
	}),
	passed("replica-unnamed", raydemand.Warning, "pods from before numOfHosts was above 1 are neither counted nor deleted", func(o *Object, f raydemand.Finding) remedy {
		name := ""
		for _, g := range groupsOf(o, gpuinfo.Names{}) {
			if strings.HasPrefix(o.path(f.Field), g.at.String()+".") {
				name = g.name
			}
		}
		return run("kubectl delete pod -n " + quote(o.Namespace) + " -l " +
			quote("ray.io/cluster="+o.Name+",ray.io/group="+name+",!ray.io/worker-group-replica-name")).hint("once they have no work")
	}),
}

// passed tells what reading the object has found under a code.
func passed(code string, severity raydemand.Severity, why string, fix func(*Object, raydemand.Finding) remedy) Check {
	return Check{Code: code, Severity: severity, Why: why, look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
		for _, f := range o.Cluster.Findings {
			if f.Code == code && !saidBetter(f) {
				tell(sight{of: o, path: o.path(f.Field), severity: f.Severity, seen: f.Seen, why: f.Why, fix: fix(o, f)})
			}
		}
	})}
}

// saidBetter reports whether a check of its own tells of the same with a patch.
func saidBetter(f raydemand.Finding) bool {
	switch {
	case f.Code == nodepool.SpecRefused && (strings.HasSuffix(f.Field, ".restartPolicy") || strings.HasSuffix(f.Field, ".idleTimeoutSeconds") ||
		f.Field == "spec.headGroupSpec.template" && strings.Contains(f.Seen, "RAY_enable_autoscaler_v2")):
		return true
	case f.Code == "pods-refused":
		_, name, _ := strings.Cut(f.Field, "resources.limits.")
		return isGPU(gpuinfo.Names{}, name)
	}
	return false
}

// path is where a field of the RayCluster stands in this object: a RayJob and a RayService have the spec further down. A key of a map, which may
// have dots, goes into brackets.
func (o *Object) path(field string) string {
	if rest, inSpec := strings.CutPrefix(field, "spec."); inSpec {
		field = strings.Join(o.Spec, ".") + "." + rest
	}
	for _, before := range []string{"metadata.annotations", ".limits", ".requests", ".nodeSelector", ".labels"} {
		if above, key, found := strings.Cut(field, before+"."); found && strings.ContainsAny(key, "./") {
			return above + before + fmt.Sprintf("[%q]", key)
		}
	}
	return field
}

func edited(o *Object, f raydemand.Finding) remedy { return o.edit(f.Fix) }

// placeOf reads a path of keys and indexes. ok is false where a key could have a dot of its own.
func placeOf(path string) (at place, ok bool) {
	for _, part := range strings.Split(path, ".") {
		key, rest, indexed := strings.Cut(part, "[")
		at = append(at, key)
		for indexed {
			digits, more, closed := strings.Cut(rest, "]")
			n, err := strconv.Atoi(digits)
			if err != nil || !closed {
				return nil, false
			}
			at = append(at, n)
			_, rest, indexed = strings.Cut(more, "[")
		}
	}
	return at, !strings.ContainsAny(fmt.Sprint(at...), "/\"")
}
