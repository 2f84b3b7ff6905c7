package docs

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// written returns the page's name for the type of a field.
func written(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[time.Time]():
		return "time"
	case reflect.TypeFor[raydemand.Bundle]():
		return "amounts"
	case reflect.TypeFor[raydemand.Amount]():
		return "number"
	}
	switch of.Kind() {
	case reflect.Pointer:
		return written(of.Elem())
	case reflect.Slice:
		return "list"
	case reflect.Map:
		if of.Elem().Kind() == reflect.String {
			return "labels"
		}
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "yes or no"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	}
	return "object"
}

// keysOf returns the JSON keys of a struct with their types, including those of embedded structs.
func keysOf(of reflect.Type) map[string]string {
	keys := map[string]string{}
	for _, field := range reflect.VisibleFields(of) {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != "" {
			keys[key] = written(field.Type)
		}
	}
	return keys
}

func TestPlanListsEveryKeyOfASnapshotWithItsType(t *testing.T) {
	snapshot := keysOf(reflect.TypeFor[planner.Snapshot]())
	snapshot["rayCluster"] = "object" // in the place of groups
	snapshot["kubeNodes"], snapshot["kubePods"], snapshot["pools"] = "list", "list", "list"
	snapshot["kubeResourceSlices"], snapshot["kubeResourceClaims"] = "list", "list"
	snapshot["kubeDeviceClasses"], snapshot["kubeResourceClaimTemplates"] = "list", "list"
	snapshot["kubeLimitRanges"], snapshot["kubeResourceQuotas"] = "list", "list"
	snapshot["topologyLabels"] = "labels"
	snapshot["complete"] = "yes or no"
	want := map[string]map[string]string{
		"The snapshot": snapshot, "A group": keysOf(reflect.TypeFor[planner.Group]()), "A node": keysOf(reflect.TypeFor[planner.Node]()),
		"A request": keysOf(reflect.TypeFor[raydemand.Request]()), "A request of an owner": keysOf(reflect.TypeFor[raydemand.Owned]()), "A gang": keysOf(reflect.TypeFor[raydemand.Gang]()),
		"A pool of a group": keysOf(reflect.TypeFor[planner.GroupPool]()), "A slice": keysOf(reflect.TypeFor[planner.Slice]()), "An announcement": keysOf(reflect.TypeFor[landing.Announced]()), "The policy": keysOf(reflect.TypeFor[planner.Policy]()),
		"Places": keysOf(reflect.TypeFor[landing.Place]()), "Promises": keysOf(reflect.TypeFor[planner.Promise]()), "Quotas": keysOf(reflect.TypeFor[planner.Quota]()),
		"Warm capacity": keysOf(reflect.TypeFor[planner.Warm]()), "An entry of warm capacity": keysOf(reflect.TypeFor[planner.WarmEntry]()),
	}
	row := regexp.MustCompile("^\\| `(\\w+)` \\| ([^|]+) \\|([^|]*)\\|([^|]*)\\| ([^|]+) \\|$")
	got, heading := map[string]map[string]string{}, ""
	for line := range strings.Lines(read(t, "docs/reference/plan.md")) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			heading, got[title] = title, map[string]string{}
		}
		if cells := row.FindStringSubmatch(strings.TrimSpace(line)); cells != nil && heading != "" {
			if _, twice := got[heading][cells[1]]; twice {
				t.Errorf("%s lists %s twice", heading, cells[1])
			}
			got[heading][cells[1]] = cells[2]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys and types (-source +docs) of %v:\n%s", slices.Sorted(maps.Keys(want)), diff)
	}
}
