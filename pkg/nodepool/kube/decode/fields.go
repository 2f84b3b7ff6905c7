package decode

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the findings of this package. They are stable; the texts beside them are for people.
const (
	// FieldUnreadable: a field has another type than the CRD says.
	FieldUnreadable = "field-unreadable"
	// FieldOutOfRange: a number does not fit into 32 bits, so the operator cannot decode the object.
	FieldOutOfRange = "field-out-of-range"
)

// Fields is one JSON object in a RayCluster. Reading never fails: an absent field is the zero value, and so is a field
// of the wrong type, which also becomes a finding in Report.
type Fields struct {
	fieldpath.Value
	Report *Report
}

// FieldsOf returns the fields of a whole object. Faults become findings in the report; with a nil report nobody sees
// them.
func FieldsOf(object map[string]any, report *Report) Fields {
	if report == nil {
		return Fields{fieldpath.Of(object, nil), &Report{}}
	}
	return Fields{fieldpath.Of(object, func(fault fieldpath.Fault) { addFault(report, fault) }), report}
}

// addFault adds the finding about a field that typed clients cannot decode.
func addFault(report *Report, fault fieldpath.Fault) {
	report.Unreadable = true
	if fault.OutOfRange {
		report.Add(raydemand.Error, FieldOutOfRange, fault.Path.String(), fault.Value,
			"the KubeRay operator cannot decode this object, and its list then fails for the RayClusters of all "+
				"namespaces",
			"set it to "+fault.Want)
		return
	}
	report.Add(raydemand.Error, FieldUnreadable, fault.Path.String(), fault.Value,
		"it is not "+fault.Want+", so the operator cannot decode the object", fixOf(fault))
}

// fixOf says how a field gets the type that it should have. Most often, quotes are wrong.
func fixOf(fault fieldpath.Fault) string {
	isBool := func(text string) bool { return text == "true" || text == "false" }
	text, notQuoted := strconv.Unquote(fault.Value)
	_, notWhole := strconv.ParseInt(text, 10, 64)
	_, notNumber := strconv.ParseFloat(fault.Value, 64)
	variable := Unfilled(fault.Value)
	switch {
	case variable != "":
		return FillIn(variable)
	case fault.Want == "a string" && (notNumber == nil || isBool(fault.Value)):
		return fmt.Sprintf("put it in quotes: %q", fault.Value)
	case notQuoted == nil && (fault.Want == "a whole number" && notWhole == nil ||
		fault.Want == "true or false" && isBool(text)):
		return "remove the quotes"
	}
	return "make it " + fault.Want
}

// silent returns the fields without their faults, for a second reading of what was reported before.
func (f Fields) silent() Fields { return Fields{f.Reporting(nil), f.Report} }

// at returns the path of a member, or of a member of a member, for findings.
func (f Fields) at(keys ...string) string { return f.Path(keys...).String() }

// Object returns a member that is an object.
func (f Fields) Object(name string) Fields { return Fields{f.Value.Object(name), f.Report} }

// Objects returns a list of objects. An entry of another type keeps its place, as an empty object with a finding.
func (f Fields) Objects(name string) []Fields {
	values := f.Value.Objects(name)
	list := make([]Fields, len(values))
	for i, value := range values {
		list[i] = Fields{value, f.Report}
	}
	return list
}

// Int32 returns a 32-bit number, or what an absent one means.
func (f Fields) Int32(name string, absent int) int {
	if n, ok := f.Value.Int32(name); ok {
		return n
	}
	return absent
}

// Int64 returns a number of up to 64 bits, or 0.
func (f Fields) Int64(name string) int64 {
	n, _ := f.Whole(name)
	return n
}

// Report collects the findings about one object.
type Report struct {
	Object string
	All    []raydemand.Finding
	// Unreadable is set if typed clients cannot decode the object.
	Unreadable bool
}

// Add adds a finding about a field of the object.
func (f *Report) Add(severity raydemand.Severity, code, field, seen, why, fix string) {
	f.All = append(f.All, raydemand.Finding{
		Code: code, Severity: severity, Object: f.Object, Field: Short(field), Seen: Short(seen), Why: why, Fix: fix,
	})
}

// Short cuts a long text: an annotation alone can have 256 KiB.
func Short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// MostOfOneCode is how many findings with the same code one RayCluster can have.
const MostOfOneCode = 20

// limited removes repeated findings, so that a field that is read twice is reported once, and keeps at most
// MostOfOneCode of each code; the last one says how many more there are.
func limited(all []raydemand.Finding) (kept []raydemand.Finding) {
	seen, counts, last := make(map[raydemand.Finding]bool, len(all)), map[string]int{}, map[string]int{}
	for _, f := range all {
		if seen[f] {
			continue
		}
		seen[f] = true
		if counts[f.Code]++; counts[f.Code] <= MostOfOneCode {
			last[f.Code] = len(kept)
			kept = append(kept, f)
		}
	}
	for code, at := range last {
		if more := counts[code] - MostOfOneCode; more > 0 {
			kept[at].Why += fmt.Sprintf("; %d more of this kind are not listed", more)
		}
	}
	return kept
}

// Amount rounds up to 1/10000, finer than the 1/1000 that Kubernetes counts CPU in, and stops at the largest Amount.
func Amount(q resource.Quantity) raydemand.Amount {
	switch most := int64(raydemand.MaxAmount / raydemand.One); {
	case q.CmpInt64(most) >= 0:
		return raydemand.MaxAmount
	case q.CmpInt64(-most) <= 0:
		return -raydemand.MaxAmount
	}
	return raydemand.Amount(q.ScaledValue(-4))
}

// extended reports whether Kubernetes treats the resource as an extended one, which cannot be overcommitted.
func extended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
