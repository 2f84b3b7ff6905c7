package nodepool

// ConsolidateAnnotation on a RayCluster lets Heliostat pack workers that are each used a little onto fewer: none,
// serve or restartable. Without it, Heliostat only suggests it.
const ConsolidateAnnotation = "heliostat.dev/consolidate"

// Consolidate is a value of ConsolidateAnnotation: which work may move.
type Consolidate string

const (
	// ConsolidateNone moves nothing.
	ConsolidateNone Consolidate = "none"
	// ConsolidateServe moves replicas of Ray Serve, which starts a replica elsewhere before it stops one on a draining
	// node. Nothing is ended.
	ConsolidateServe Consolidate = "serve"
	// ConsolidateRestartable also ends actors that Ray restarts elsewhere, when the deadline of the drain is over.
	ConsolidateRestartable Consolidate = "restartable"
)

// Valid reports whether c is one of the values.
func (c Consolidate) Valid() bool {
	return c == ConsolidateNone || c == ConsolidateServe || c == ConsolidateRestartable
}

// Allows reports whether c lets work move that needs the other.
func (c Consolidate) Allows(needs Consolidate) bool {
	return c == ConsolidateRestartable && needs.Valid() || c == ConsolidateServe && needs == ConsolidateServe
}
