package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func annotationUnknown(x *inventory, o *Object, report reporter) {
	known := append([]string{syncAnnotation}, x.Input.Annotations...)
	slices.Sort(known)
	known = slices.Compact(known)
	all := o.Root().Get("metadata", "annotations")
	for _, key := range all.Keys() {
		if !strings.HasPrefix(key, annotationPrefix) || slices.Contains(known, key) {
			continue
		}
		if instead, was := x.Input.RemovedAnnotations[key]; was {
			report(occurrence{Object: o, Path: all.Path(key), Seen: all.Get(key).String(),
				More: "it was removed; " + instead, Fix: patch(o, remove(all.Path(key)))})
			continue
		}
		nearest := slices.MinFunc(known,
			func(a, b string) int { return fieldpath.Distance(key, a) - fieldpath.Distance(key, b) })
		repair := patch(o, remove(all.Path(key))).Hint("the known annotations are " + strings.Join(known, ", "))
		if fieldpath.Distance(key, nearest) <= 3 && !all.Has(nearest) {
			repair = patch(o, move(all.Path(key), all.Path(nearest)))
		}
		report(occurrence{Object: o, Path: all.Path(key), Seen: all.Get(key).String(),
			More: "the most similar known annotation is " + nearest, Fix: repair})
	}
	for _, f := range o.Cluster.Findings { // fields inside of an annotation
		if f.Code == "annotation-unknown" && strings.Contains(f.Field, capacity.Annotation+": ") {
			report(occurrence{Object: o, Field: fieldIn(o, f.Field), Seen: f.Seen, Why: f.Why,
				Fix: edit(o, f.Fix)})
		}
	}
}

func syncRecreates(_ *inventory, o *Object, report reporter) {
	strategy := o.raySpec().Get("upgradeStrategy", "type")
	sync := o.Root().Text("metadata", "annotations", syncAnnotation)
	if strategy.Text() == "Recreate" && (sync == "enforce" || sync == "when-empty") {
		report(occurrence{
			Object: o, Path: strategy.Path(), Seen: "Recreate, and " + syncAnnotation + ": " + sync,
			Fix: patch(o, replace(strategy.Path(), "None")).Hint("or set num-gpus-sync to report"),
		})
	}
}
