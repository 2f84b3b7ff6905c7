package plannertest

import (
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
)

// DrawPriced draws a snapshot whose groups have prices and priorities.
func DrawPriced(t *rapid.T) model.Snapshot {
	s := DrawSnapshot(t)
	for i := range s.Groups {
		price := float64(rapid.IntRange(1, 9).Draw(t, "price"))
		s.Groups[i].Price = &price
		s.Groups[i].Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	}
	return s
}
