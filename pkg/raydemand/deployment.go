package raydemand

// Deployment is one deployment of a Ray Serve application: how many replicas Serve wants of it, and what one requests.
type Deployment struct {
	App, Name string
	// Replicas is how many replicas Serve wants now (target_num_replicas), those that run included.
	Replicas int64
	// Bundles are what one replica requests: one bundle for its actor, or those of its placement group, which are
	// placed by Strategy. A replica without bundles requests nothing.
	Bundles  []Bundle
	Strategy Strategy
	// Selectors are alternatives in order of preference for each bundle; none means any node.
	Selectors []Selector
}
