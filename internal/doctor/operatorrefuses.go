package doctor

import (
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// operatorRefuses reports the first reason for which the operator refuses an object, in its own words, unless decoding
// the RayCluster in it has found one with its field.
func operatorRefuses(_ *inventory, o *Object, report reporter) {
	if c := o.Cluster; c != nil && (c.Refused || c.Unreadable || versionVariable(o) != (fieldpath.Path{}) ||
		c.Generation > 0 && c.ObservedGeneration >= c.Generation) || !o.Read() || len(rayViolations(o)) > 0 {
		return
	}
	if err := kube.OperatorVerdict(o.Fields); err != nil {
		at := fieldpath.NewPath("spec")
		if strings.Contains(err.Error(), " name should ") {
			at = fieldpath.NewPath("metadata").Key("name")
		}
		report(occurrence{Object: o, Path: at, More: err.Error(), Fix: edit(o, "correct it")})
	}
}
