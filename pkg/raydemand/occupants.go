package raydemand

// Occupants is what lives in a Ray cluster and may wait for something although it has no work now.
type Occupants struct {
	// Of each kind, at most MostOccupants are named.
	Drivers, Actors, PlacementGroups Living
}

// Living is how many of one kind live, with the names of some. More: there may be more than Count.
type Living struct {
	Count int
	More  bool
	Names []string
}

// MostOccupants is how many of one kind are named.
const MostOccupants = 3

// Add counts one.
func (l *Living) Add(name string) {
	if l.Count++; len(l.Names) < MostOccupants {
		l.Names = append(l.Names, name)
	}
}
