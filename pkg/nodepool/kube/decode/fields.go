package decode

import (
	"fmt"
	"strconv"

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
	switch {
	case fault.Want == "a string" && (notNumber == nil || isBool(fault.Value)):
		return fmt.Sprintf("put it in quotes: %q", fault.Value)
	case notQuoted == nil && (fault.Want == "a whole number" && notWhole == nil ||
		fault.Want == "true or false" && isBool(text)):
		return "remove the quotes"
	}
	return "make it " + fault.Want
}

// silent returns the fields without their report, for a second reading of what was reported before.
func (f Fields) silent() Fields { return Fields{f.Silent(), &Report{}} }

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
