package snapshotfile

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
)

// TestEveryRuleIsOfAFieldOfASnapshot finds rules that no longer apply because a struct or a key has another name.
func TestEveryRuleIsOfAFieldOfASnapshot(t *testing.T) {
	left, seen := maps.Clone(rules), map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() || seen[of] {
			return
		}
		seen[of] = true
		for _, f := range fieldsOf(of) {
			delete(left, of.Name()+"."+f.Key)
			visit(of.FieldByIndex(f.Index).Type)
		}
	}
	visit(reflect.TypeFor[model.Snapshot]())
	if len(left) > 0 {
		t.Errorf("no field of a snapshot is %s", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
}
