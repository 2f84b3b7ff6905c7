package doctor

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	prefix         = "heliostat.dev/"
	modeAnnotation = prefix + "mode"
	syncAnnotation = prefix + "num-gpus-sync"
)

// annotations are checks of what a RayCluster tells Heliostat. Values other than that of num-gpus-sync are read with the object.
var annotations = []Check{
	{
		Code: "annotation-unknown", Severity: raydemand.Warning,
		Why: "nobody reads it, so what it asks for does not happen",
		look: perCluster(func(x *exam, o *Object, tell func(sight)) {
			all := o.root().get("metadata", "annotations")
			for _, key := range all.keys() {
				if !strings.HasPrefix(key, prefix) || slices.Contains(x.knownAnnotations(), key) {
					continue
				}
				nearest := x.nearestAnnotation(key)
				s := sight{of: o, at: all.get(key).at, seen: all.get(key).String(), more: "the nearest that is read is " + nearest,
					fix: o.patch(remove(all.get(key).at)).hint("the others are " + strings.Join(x.knownAnnotations(), ", "))}
				if typo.Distance(key, nearest) <= 3 && !all.get(nearest).has() {
					s.fix = o.patch(move(all.get(key).at, all.get(nearest).at))
				}
				tell(s)
			}
		}),
	},
	{
		Code: "sync-recreates", Severity: raydemand.Warning,
		Why: "under upgradeStrategy Recreate the operator deletes all pods, the head too, when num-gpus changes, so the sync refuses to write and the " +
			"annotation has no effect",
		look: perCluster(func(_ *exam, o *Object, tell func(sight)) {
			strategy := o.spec().get("upgradeStrategy", "type")
			sync := o.root().get("metadata", "annotations", syncAnnotation)
			if strategy.text() == "Recreate" && (sync.text() == "enforce" || sync.text() == "when-empty") {
				tell(sight{of: o, at: strategy.at, seen: "Recreate, and " + syncAnnotation + ": " + sync.text(),
					fix: o.patch(op{Op: "replace", At: strategy.at, Value: "None"}).hint("or let num-gpus-sync report")})
			}
		}),
	},
}

func (x *exam) knownAnnotations() []string {
	known := append([]string{syncAnnotation}, x.input.Annotations...)
	slices.Sort(known)
	return slices.Compact(known)
}

func (x *exam) nearestAnnotation(key string) string {
	return slices.MinFunc(x.knownAnnotations(), func(a, b string) int { return typo.Distance(key, a) - typo.Distance(key, b) })
}
