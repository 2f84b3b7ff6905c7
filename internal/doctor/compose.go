package doctor

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// mended is a finding's code with its remedy.
type mended struct {
	code string
	*remedy
}

// compose makes one patch of those that would get into each other's way: two that create the same object, of which the later would throw the earlier's away,
// and those that change entries of a list from which one takes an entry, so that the places of others move.
func compose(all []mended) {
	byObject := map[*Object][]mended{}
	for _, m := range all {
		if len(m.ops) > 0 {
			byObject[m.of] = append(byObject[m.of], m)
		}
	}
	for _, patches := range byObject {
		for _, together := range entangled(patches) {
			if len(together) > 1 {
				join(together)
			}
		}
	}
}

// entangled are the patches of one object in sets that share something.
func entangled(patches []mended) [][]mended {
	shrinking := map[string]bool{}
	for _, p := range patches {
		for _, o := range p.ops {
			if list, shrinks := o.shrinks(); shrinks {
				shrinking[list] = true
			}
		}
	}
	var sets [][]mended
	setOf := map[string]int{}
	for _, p := range patches {
		at := len(sets)
		sets = append(sets, []mended{p})
		for _, key := range p.shares(shrinking) {
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

// shares are what a patch must not change beside another: objects that it creates, and lists that shrink.
func (r *remedy) shares(shrinking map[string]bool) []string {
	var keys []string
	for _, o := range r.ops {
		if o.Op == "add" && o.At[len(o.At)-1] != "-" {
			keys = append(keys, "add "+o.At.pointer())
		}
		for i, step := range o.At {
			if list := o.At[:i].pointer(); shrinking[list] && step != "-" {
				keys = append(keys, "list "+list)
			}
		}
	}
	return keys
}

// shrinks reports whether the operation takes an entry out of a list.
func (o op) shrinks() (list string, ok bool) {
	if o.Op != "remove" {
		return "", false
	}
	last := len(o.At) - 1
	_, ok = o.At[last].(int)
	return o.At[:last].pointer(), ok
}

// join gives all of them one patch. What takes entries out of lists comes last, from the end of the list on.
func join(patches []mended) {
	var ops, last []op
	var hints, codes []string
	for _, p := range patches {
		codes = append(codes, p.code)
		hints = append(hints, p.hints...)
		for _, o := range p.ops {
			if _, shrinks := o.shrinks(); shrinks {
				last = append(last, o)
			} else {
				ops = append(ops, o)
			}
		}
	}
	slices.SortStableFunc(last, func(a, b op) int {
		i, j := len(a.At)-1, len(b.At)-1
		return cmp.Or(strings.Compare(a.At[:i].pointer(), b.At[:j].pointer()), b.At[j].(int)-a.At[i].(int))
	})
	ops = unite(append(ops, last...))
	slices.Sort(codes)
	codes = slices.Compact(codes)
	slices.Sort(hints)
	hints = slices.Compact(hints)
	for _, p := range patches {
		p.ops, p.hints = ops, hints
		p.also = slices.DeleteFunc(slices.Clone(codes), func(code string) bool { return code == p.code })
	}
}

// unite leaves out what is said twice, and makes one of two operations that create the same object.
func unite(ops []op) []op {
	var united []op
	for _, o := range ops {
		at := slices.IndexFunc(united, func(other op) bool {
			return other.Op == o.Op && other.At.pointer() == o.At.pointer() && (o.Op == "add" && o.At[len(o.At)-1] != "-" || reflect.DeepEqual(other, o))
		})
		if at < 0 {
			united = append(united, o)
			continue
		}
		united[at].Value = both(united[at].Value, o.Value)
	}
	return united
}

// both has the fields and entries of two values; of two that contradict each other the first is taken.
func both(a, b any) any {
	fields, isObject := a.(map[string]any)
	others, areObjects := b.(map[string]any)
	if isObject && areObjects {
		all := map[string]any{}
		for key, value := range fields {
			all[key] = value
		}
		for key, value := range others {
			if own, there := all[key]; there {
				value = both(own, value)
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
	for _, entry := range more {
		if !slices.ContainsFunc(all, func(own any) bool { return reflect.DeepEqual(own, entry) }) {
			all = append(all, entry)
		}
	}
	return all
}
