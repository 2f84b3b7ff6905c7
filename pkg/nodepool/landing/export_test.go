package landing

// What the tests outside of the package see beside what it exports.
var (
	Constrain  = constrain
	TypesOf    = typesOf
	CeilingsOf = ceilingsOf
	PodsOn     = (*PodShape).podsOn
)

// WhereOn is Nodes.Where on places that are not merged.
func WhereOn(rooms []Room, places []Node, shape *PodShape) Answer {
	return (&Nodes{Pools: Pools{Rooms: rooms}}).where(shape, places)
}
