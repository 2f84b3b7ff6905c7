package scenario

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// announced reads what is known about a label or the accelerator type of a group's new pods.
func (r *reader) announced() landing.Announced {
	a := landing.Announced{}
	texts := func(into *[]string) func() {
		return func() { r.array("a list of values [a, b]", func() { *into = append(*into, r.text("a value")) }) }
	}
	r.fields("an announcement such as {name: zone, values: [a], certain: yes}", map[string]func(){
		"name":    func() { a.Name = r.text("a label's key, or accelerator_type: in quotes") },
		"values":  texts(&a.Values),
		"shown":   texts(&a.Shown),
		"present": func() { a.Present = r.oneOf("present", []string{"yes"}) == "yes" },
		"certain": func() { a.Certain = r.oneOf("certain", []string{"yes"}) == "yes" },
		"why":     func() { a.Why = r.text("a reason in quotes") },
	})
	return a
}

func announcedText(a *landing.Announced) string {
	list := func(values []string) string {
		quoted := make([]string, len(values))
		for i, value := range values {
			quoted[i] = quote(value)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	w := words{"name: " + quote(a.Name)}
	w.when(len(a.Values) > 0, "values: "+list(a.Values))
	w.when(a.Present, "present: yes")
	w.when(a.Certain, "certain: yes")
	w.when(len(a.Shown) > 0, "shown: "+list(a.Shown))
	w.when(a.Why != "", "why: "+quote(a.Why))
	return braces(w)
}
