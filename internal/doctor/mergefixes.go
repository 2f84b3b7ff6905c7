package doctor

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// mergeFixes makes one patch of patches that conflict, and gives it to each of their findings. Two patches conflict if
// they create the same object, because the later one would discard what the earlier one wrote, and if one removes an
// element of a list in which the other changes an element, because the elements behind it move.
func mergeFixes(all []occurrence) {
	byObject := map[*Object][]*occurrence{}
	for i := range all {
		if f := &all[i].Fix; len(f.operations) > 0 {
			byObject[f.object] = append(byObject[f.object], &all[i])
		}
	}
	for _, patches := range byObject {
		for _, set := range conflicting(patches) {
			if len(set) > 1 {
				joinPatches(set)
			}
		}
	}
}

// conflicting sorts the patches of one object into sets that conflict.
func conflicting(patches []*occurrence) [][]*occurrence {
	shrinking := map[string]bool{}
	for _, p := range patches {
		for _, o := range p.Fix.operations {
			if list, removes := o.removesElement(); removes {
				shrinking[list] = true
			}
		}
	}
	var sets [][]*occurrence
	setOf := map[string]int{}
	for _, p := range patches {
		at := len(sets)
		sets = append(sets, []*occurrence{p})
		for _, key := range p.Fix.conflictKeys(shrinking) {
			other, taken := setOf[key]
			if taken && other != at {
				sets[at], sets[other] = append(sets[other], sets[at]...), nil
				for k, set := range setOf {
					if set == other {
						setOf[k] = at
					}
				}
			}
			setOf[key] = at
		}
	}
	return sets
}

// conflictKeys returns the objects that a patch creates and the shrinking lists that it changes. Patches that have one
// of them in common conflict.
func (f *fix) conflictKeys(shrinking map[string]bool) []string {
	var keys []string
	for _, o := range f.operations {
		if o.Op == "add" && !o.appends() {
			keys = append(keys, "add "+o.At.Pointer())
		}
		for _, prefix := range o.At.Prefixes() {
			if list := prefix.Parent().Pointer(); shrinking[list] && prefix.LastKey() != "-" {
				keys = append(keys, "list "+list)
			}
		}
	}
	return keys
}

// joinPatches gives all findings one patch. The removal of list elements comes last, from the end of each list.
func joinPatches(patches []*occurrence) {
	var operations, removals []operation
	var hints, codes []string
	for _, p := range patches {
		codes = append(codes, p.by.Code)
		hints = append(hints, p.Fix.hints...)
		for _, o := range p.Fix.operations {
			if _, removes := o.removesElement(); removes {
				removals = append(removals, o)
			} else {
				operations = append(operations, o)
			}
		}
	}
	slices.SortStableFunc(removals, func(a, b operation) int {
		i, _ := a.At.LastIndex()
		j, _ := b.At.LastIndex()
		return cmp.Or(strings.Compare(a.At.Parent().Pointer(), b.At.Parent().Pointer()), j-i)
	})
	operations = deduplicate(append(operations, removals...))
	slices.Sort(codes)
	codes = slices.Compact(codes)
	slices.Sort(hints)
	hints = slices.Compact(hints)
	for _, p := range patches {
		p.Fix.operations, p.Fix.hints = operations, hints
		p.Fix.also = slices.DeleteFunc(slices.Clone(codes), func(code string) bool { return code == p.by.Code })
	}
}

// deduplicate drops repeated operations, and makes one of two that create the same object.
func deduplicate(operations []operation) []operation {
	var unique []operation
	for _, o := range operations {
		at := slices.IndexFunc(unique, func(other operation) bool {
			if other.Op != o.Op || other.At.Pointer() != o.At.Pointer() {
				return false
			}
			return o.Op == "add" && !o.appends() ||
				other.From.Pointer() == o.From.Pointer() && reflect.DeepEqual(other.Value, o.Value)
		})
		if at < 0 {
			unique = append(unique, o)
			continue
		}
		unique[at].Value = union(unique[at].Value, o.Value)
	}
	return unique
}

// union returns the fields and elements of two values. If two fields contradict each other, the first one wins.
func union(a, b any) any {
	fields, isObject := a.(map[string]any)
	others, areObjects := b.(map[string]any)
	if isObject && areObjects {
		all := map[string]any{}
		for key, value := range fields {
			all[key] = value
		}
		for key, value := range others {
			if own, there := all[key]; there {
				value = union(own, value)
			}
			all[key] = value
		}
		return all
	}
	list, isList := a.([]any)
	more, isMore := b.([]any)
	if !isList || !isMore {
		return a
	}
	all := slices.Clone(list)
	for _, element := range more {
		if !slices.ContainsFunc(all, func(own any) bool { return reflect.DeepEqual(own, element) }) {
			all = append(all, element)
		}
	}
	return all
}
