package landing

// Pod is a kind of pods that are equal for a scheduler: those of one worker group, or pods that are on nodes and that a
// constraint of another kind selects.
type Pod struct {
	Name string `json:"name"`
	// Requests is what one pod takes of a node. It takes one of the node's "pods" in any case.
	Requests Quantities `json:"requests"`
	// Cards is what it takes of single cards beside that, on nodes that list them.
	Cards *CardRequest `json:"cards,omitempty"`
	// Apart names the pods that must not be on the same node, by required anti-affinity or a port of the node. It holds
	// in both directions.
	Apart []string `json:"apart,omitempty"`
	// Spread are the topology spread constraints over nodes that forbid (DoNotSchedule).
	Spread []Spread `json:"spread,omitempty"`
}

// Spread bounds how unevenly pods are spread over nodes: a node may have at most MaxSkew of them more than the one with
// the fewest.
type Spread struct {
	MaxSkew int64 `json:"maxSkew"`
	// MinDomains: with fewer nodes, the fewest counts as 0. 0 and 1 mean no minimum.
	MinDomains int64 `json:"minDomains,omitempty"`
	// Pods are the names of the pods that are counted.
	Pods []string `json:"pods"`
}

// CardRequest is what a pod takes of single cards: the same of each of several different cards, or of
// as many parts of cards if they are stacked.
type CardRequest struct {
	// Cards is the number of cards; 0 means one.
	Cards int64 `json:"cards,omitempty"`
	// Memory is in units of the resource, MemoryPercent in percent of the card's memory if Memory is 0.
	Memory        int64 `json:"memory,omitempty"`
	MemoryPercent int64 `json:"memoryPercent,omitempty"`
	// Cores is in percent of one card.
	Cores int64 `json:"cores,omitempty"`
	// Stacked: a card may have several of the pod's parts.
	Stacked bool `json:"stacked,omitempty"`
	// Whole says that no other pod may use the cards, before or after.
	Whole bool `json:"whole,omitempty"`
	// Order, if it is set, replaces the CardOrder of a place: with HAMi a pod may say what it wants.
	Order string `json:"order,omitempty"`
	// pod is the name of the pod, which New sets.
	pod string
}
