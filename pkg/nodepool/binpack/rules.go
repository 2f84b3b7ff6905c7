package binpack

import "slices"

// rules are a kind's constraints on where its pods may be beside others: those of the scheduler's filters
// InterPodAffinity and PodTopologySpread (docs/reference/facts.md#rules-between-pods). Other kinds are numbers, domains
// are cells.
type rules struct {
	// aparts are the kinds that must not be in the same domain, in both directions.
	aparts []apartRule
	// together is nil if the kind has no required affinity.
	together *togetherRule
	spreads  []spreadRule
}

// apartRule: no pod of a kind may be in the same domain of a key.
type apartRule struct{ key, kind int }

// togetherRule: a pod of one of the kinds must be in the same domain of each key. self: a pod may be the first.
type togetherRule struct {
	keys, kinds []int
	self        bool
}

// spreadRule bounds how many pods of the kinds a domain may have more than the one with the fewest.
type spreadRule struct {
	key                 int
	maxSkew, minDomains int64
	kinds               []int
	self                bool
	// exists marks by cell the domains that count: they have a node that the pod's node affinity allows.
	exists []bool
}

// hostKey is the key of which each node is its own domain. The other keys have numbers from 0.
const hostKey = -1

// The domain of a place by a key is the number of a cell, or one of these.
const (
	// noDomain: the nodes lack the label. anyDomain: they do not exist yet, and the label's value is unknown.
	noDomain  = -1
	anyDomain = -2
)

// cell is one domain of one key.
type cell struct {
	key   int
	value string
}

// bind turns the constraints of pods into rules. It must be called before the places are read.
func (p *Packer) bind(pods []Pod, names map[string]int) {
	keys := map[string]int{Hostname: hostKey}
	key := func(name string) int {
		n, known := keys[name]
		if !known {
			n = len(keys) - 1
			keys[name] = n
			p.keys = append(p.keys, name)
		}
		return n
	}
	for i := range pods {
		r := &p.kinds[i].rules
		for _, term := range pods[i].Apart {
			for _, other := range numbers(term.Pods, names) {
				p.setApart(i, other, key(term.TopologyKey))
			}
		}
		r.together = togetherOf(pods[i].Together, i, names, key)
		for _, s := range pods[i].Spread {
			kinds := numbers(s.Pods, names)
			r.spreads = append(r.spreads, spreadRule{key: key(s.TopologyKey), maxSkew: max(s.MaxSkew, 1),
				minDomains: s.MinDomains, kinds: kinds, self: slices.Contains(kinds, i)})
		}
	}
	for i := range p.kinds {
		p.kinds[i].linked = p.kinds[i].rules.reachBeyondANode()
		p.ruled = p.ruled || p.kinds[i].linked || len(p.kinds[i].rules.aparts) > 0
	}
}

// setApart keeps two kinds apart, in both directions: the scheduler also checks the anti-affinity of the pods that are
// there.
func (p *Packer) setApart(a, b, key int) {
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		r, rule := &p.kinds[pair[0]].rules, apartRule{key, pair[1]}
		if !slices.Contains(r.aparts, rule) {
			r.aparts = append(r.aparts, rule)
		}
	}
}

// togetherOf joins the terms of an affinity: a pod counts if every term selects it.
func togetherOf(terms []Affinity, own int, names map[string]int, key func(string) int) *togetherRule {
	if len(terms) == 0 {
		return nil
	}
	r := &togetherRule{kinds: numbers(terms[0].Pods, names)}
	for _, term := range terms {
		selected := numbers(term.Pods, names)
		r.kinds = slices.DeleteFunc(r.kinds, func(kind int) bool { return !slices.Contains(selected, kind) })
		r.keys = append(r.keys, key(term.TopologyKey))
	}
	r.self = slices.Contains(r.kinds, own)
	return r
}

func numbers(list []string, names map[string]int) []int {
	var found []int
	for _, name := range list {
		if n, known := names[name]; known && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// reachBeyondANode reports whether what is on other nodes matters for a pod.
func (r *rules) reachBeyondANode() bool {
	return r.together != nil || len(r.spreads) > 0 ||
		slices.ContainsFunc(r.aparts, func(a apartRule) bool { return a.key != hostKey })
}

// onNode returns how many of room pods may be on the node by what it holds.
func (r *rules) onNode(own int, holds []int64, room int64) int64 {
	for _, apart := range r.aparts {
		switch {
		case apart.key != hostKey:
		case apart.kind == own:
			room = min(room, max(1-holds[own], 0))
		case holds[apart.kind] > 0:
			return 0
		}
	}
	return room
}

// domainsOf returns the cells of a place, by key.
func (p *Packer) domainsOf(place *Place, cells map[cell]int) []int {
	if len(p.keys) == 0 {
		return nil
	}
	list := make([]int, len(p.keys))
	for key, name := range p.keys {
		value, set := place.Domains[name]
		switch at, known := cells[cell{key, value}]; {
		case !set && place.New:
			list[key] = anyDomain
		case !set:
			list[key] = noDomain
		case known:
			list[key] = at
		default:
			list[key] = len(cells)
			cells[cell{key, value}] = len(cells)
		}
	}
	return list
}

// findDomains marks the domains that exist for the spread of each kind.
func (p *Packer) findDomains() {
	for k := range p.kinds {
		for i := range p.kinds[k].rules.spreads {
			rule := &p.kinds[k].rules.spreads[i]
			rule.exists = make([]bool, p.cells)
			for _, s := range p.places {
				if rule.key != hostKey && !s.isNew && s.nodes > 0 && s.counts(k) && s.domains[rule.key] >= 0 &&
					s.hasKeys(p.kinds[k].rules.spreads) {
					rule.exists[s.domains[rule.key]] = true
				}
			}
		}
	}
}

// counts reports whether the nodes are domains for the spread of a kind.
func (s *site) counts(kind int) bool { return s.accepts[kind] || s.counted != nil && s.counted[kind] }

// hasKeys reports whether the nodes have the labels of all rules; the scheduler leaves out others.
func (s *site) hasKeys(spreads []spreadRule) bool {
	return !slices.ContainsFunc(
		spreads,
		func(r spreadRule) bool { return r.key != hostKey && s.domains[r.key] == noDomain },
	)
}
