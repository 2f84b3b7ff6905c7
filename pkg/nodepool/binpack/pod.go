package binpack

import "heliostat.dev/heliostat/pkg/nodepool/podfit"

// Pod is a kind of pods that are equal for a scheduler: those of one worker group, or pods that are on nodes and that a
// constraint of another kind selects.
type Pod struct {
	Name string `json:"name"`
	// Requests is what one pod takes of a node. It takes one of the node's "pods" in any case.
	Requests podfit.Quantities `json:"requests"`
	// Cards is what it takes of single cards beside that, on nodes that list them.
	Cards *CardRequest `json:"cards,omitempty"`
	// Apart are the terms of the required anti-affinity: no pod of these names in the same domain. It holds in both
	// directions.
	Apart []Affinity `json:"apart,omitempty"`
	// Together are the terms of the required affinity. A pod counts if every term names it, and each term needs one in
	// its domain. If there is no such pod anywhere, a pod that is named itself may be the first.
	Together []Affinity `json:"together,omitempty"`
	// Spread are the topology spread constraints that forbid (DoNotSchedule).
	Spread []Spread `json:"spread,omitempty"`
}

// Affinity names the pods that a term of affinity selects, and the label whose value makes nodes one domain.
type Affinity struct {
	TopologyKey string   `json:"topologyKey"`
	Pods        []string `json:"pods"`
}

// Spread bounds how unevenly pods are spread over domains: a domain may have at most MaxSkew of them more than the one
// with the fewest.
type Spread struct {
	TopologyKey string `json:"topologyKey"`
	MaxSkew     int64  `json:"maxSkew"`
	// MinDomains: with fewer domains, the fewest counts as 0. 0 and 1 mean no minimum.
	MinDomains int64 `json:"minDomains,omitempty"`
	// Pods are the names of the pods that are counted.
	Pods []string `json:"pods"`
}

// CardRequest is what a pod takes of single cards: the same of each of several different cards.
type CardRequest struct {
	// Cards is the number of cards; 0 means one.
	Cards int64 `json:"cards,omitempty"`
	// Memory is in units of the resource, MemoryPercent in percent of the card's memory if Memory is 0.
	Memory        int64 `json:"memory,omitempty"`
	MemoryPercent int64 `json:"memoryPercent,omitempty"`
	// Cores is in percent of one card.
	Cores int64 `json:"cores,omitempty"`
	// Whole says that no other pod may use the cards, before or after.
	Whole bool `json:"whole,omitempty"`
	// Order, if it is set, replaces the CardOrder of a place: with HAMi a pod may say what it wants.
	Order string `json:"order,omitempty"`
}
