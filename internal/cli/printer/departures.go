package printer

import (
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// writeDepartures lists the workers whose machine is about to go.
func writeDepartures(p *Page, departures []apiv1.Departure, as Look) {
	if len(departures) == 0 {
		return
	}
	t := Table{
		Look: as,
		Columns: []Column{Name("MACHINE GOES"), Name("GROUP"), Name("STATE"),
			Name("UNTIL"), Prose("WHY")},
	}
	for _, d := range departures {
		state := Cell{Text: "warning"}
		switch {
		case d.Leaving:
			state = Cell{Text: "LEAVING", Style: Warn}
		case d.Certain:
			state = Cell{Text: "goes", Style: Warn}
		}
		until := unknownCell
		if d.Deadline != nil {
			until = d.Deadline.UTC().Format(time.TimeOnly)
		}
		t.Add(Cell{Text: d.Pod}, Cell{Text: d.Group}, state, Cell{Text: until},
			Cell{Text: d.Sign + ": " + d.Message})
	}
	p.Line("", "")
	t.Write(p)
}
