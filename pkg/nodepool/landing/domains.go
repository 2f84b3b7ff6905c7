package landing

import "slices"

// ReplicaDomain says that the hosts of a replica must share a value of a node label, such as that of a rack: by a
// required affinity that selects the pods of their own replica.
type ReplicaDomain struct {
	// Key is the label, the topologyKey of the affinity; empty if there is no such rule. Hosts is how many pods a
	// replica has.
	Key   string
	Hosts int64
	// Alone are the terms of required anti-affinity that keep a replica off the values on which pods are that they
	// select, such as those of other replicas.
	Alone []PodTerm
}

// wholeReplicas leaves each kind with a ReplicaDomain only the nodes of whole replicas: in each domain as many as hold
// them, and none where one of its terms selects a pod. Otherwise what is left in several domains would count as room
// for one more replica. A kind stays as it is while a pool may add nodes of which nothing shows the domain.
func (t *stocktaking) wholeReplicas() {
	for i := range t.kinds {
		rule, beside := &t.kinds[i].Shape.Neighbors.Domain, &t.kinds[i].Shape.Neighbors
		if rule.Key == "" {
			continue
		}
		room, known := t.roomByDomain(i)
		if !known {
			continue
		}
		for domain, pods := range room {
			room[domain] = pods - pods%rule.Hosts
			if slices.ContainsFunc(rule.Alone, beside.SelectsItself) {
				room[domain] = min(room[domain], rule.Hosts)
			}
		}
		for _, pod := range podsOn(t.stock.nodes, func(pod *Neighbors) bool {
			return slices.ContainsFunc(rule.Alone, func(term PodTerm) bool { return beside.maySelect(term, pod) })
		}) {
			delete(room, t.stock.Node(pod.node).Labels[rule.Key])
		}
		t.keep(i, room)
	}
}

// roomByDomain returns how many pods of a kind the domains hold. It is unknown if a pool may add nodes to any domain.
func (t *stocktaking) roomByDomain(kind int) (room map[string]int64, known bool) {
	room = map[string]int64{}
	for i := range t.places {
		place := &t.places[i]
		if !slices.Contains(place.Accepts, t.kinds[kind].Name) || place.Nodes != nil && *place.Nodes == 0 {
			continue
		}
		domain, known := t.domainOf(place, t.kinds[kind].Shape.Neighbors.Domain.Key)
		if !known {
			return nil, false
		}
		room[domain] += cappedProduct(t.kinds[kind].Shape.podsIn(place.Free), nodesOf(place))
	}
	delete(room, "") // a node without the label is in no domain
	return room, true
}

// domainOf returns the value of a label of the nodes of a place. New nodes have the value that their pool declares, or
// that all its nodes have.
func (t *stocktaking) domainOf(place *Place, key string) (value string, known bool) {
	if !place.New {
		return t.stock.Node(place.Node).Labels[key], true
	}
	if place.AnySize {
		return "", false
	}
	if isPoolLabel(key) {
		return place.Pool, true
	}
	for _, nodes := range [][]Node{t.stock.Shapes, t.stock.nodes} {
		for i := range nodes {
			if nodes[i].PoolName() != place.Pool {
				continue
			}
			switch own, set := nodes[i].Labels[key]; {
			case !set, known && own != value:
				return "", false
			default:
				value, known = own, true
			}
		}
		if known {
			return value, true
		}
	}
	return "", false
}

// keep leaves a kind so much room in each domain, on the first nodes.
func (t *stocktaking) keep(kind int, room map[string]int64) {
	name, rule := t.kinds[kind].Name, &t.kinds[kind].Shape.Neighbors.Domain
	all := t.places
	t.places = make([]Place, 0, len(all))
	for _, place := range all {
		each := t.kinds[kind].Shape.podsIn(place.Free)
		if !slices.Contains(place.Accepts, name) || each == 0 {
			t.places = append(t.places, place)
			continue
		}
		domain, _ := t.domainOf(&place, rule.Key)
		there, own := nodesOf(&place), place
		kept := min((room[domain]+each-1)/each, there)
		room[domain] -= kept * each
		own.Nodes = &kept // also 0: a kind that no place accepts has no bound
		t.places = append(t.places, own)
		place.Accepts = slices.DeleteFunc(slices.Clone(place.Accepts), func(other string) bool { return other == name })
		if rest := there - kept; rest > 0 && len(place.Accepts) > 0 {
			if there < Unbounded {
				place.Nodes = &rest
			}
			t.places = append(t.places, place)
		}
	}
}
