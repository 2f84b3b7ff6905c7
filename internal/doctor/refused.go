package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/doctor/refusal"
	"heliostat.dev/heliostat/internal/fieldpath"
)

// refused reports what package refusal finds under the code of the check. An API server has accepted its own objects.
func refused() check.Scope {
	return check.Scope{Of: "manifests", Run: func(x *inventory.Inventory, code string, report check.Reporter) {
		if x.Input.Stored {
			return
		}
		for i := range x.Input.Objects {
			o := &x.Input.Objects[i]
			for _, f := range refusal.Of(o) {
				if f.Code != code || alreadyReported(o, f.Field) {
					continue
				}
				found := check.Occurrence{Object: o, Field: f.Field, Seen: f.Seen, Why: f.Why,
					More: "want " + fieldpath.Excerpt(f.Want, 400), Fix: fix.Edit(o, f.Fix)}
				if f.Code != refusal.SchemaViolated {
					found.Fix = fix.Run("kubectl api-resources --api-group=" + cmp.Or(f.Group, "''")).
						Hint(f.Fix)
				}
				if o.Place != "" {
					found.More += "; the object is in " + o.Place
				}
				report(found)
			}
		}
	}}
}

// alreadyReported reports whether capacity-policy-unreadable or object-unreadable is about the same field.
func alreadyReported(o *inventory.Object, field string) bool {
	return o.PolicyFault != nil && o.PolicyFault.Field == field ||
		slices.ContainsFunc(o.Unreadable, func(text string) bool { return strings.HasPrefix(text, field+": ") })
}
