package fleet

// StartSeconds is how long new pods of each group usually take if a node must be added. Where it is unknown, the
// longest known one counts; 0 if none is known.
func (r *Fleet) StartSeconds() []float64 {
	longest := 0.0
	for i := range r.Groups {
		if s := r.Groups[i].Group.StartSeconds; s != nil {
			longest = max(longest, *s)
		}
	}
	seconds := make([]float64, len(r.Groups))
	for i := range r.Groups {
		if seconds[i] = longest; r.Groups[i].Group.StartSeconds != nil {
			seconds[i] = *r.Groups[i].Group.StartSeconds
		}
	}
	return seconds
}
