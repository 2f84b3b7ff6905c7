package printer

import (
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/table"
)

// writeDepartures lists the workers whose machine is about to go.
func writeDepartures(p *table.Page, departures []apiv1.Departure, as table.Look) {
	if len(departures) == 0 {
		return
	}
	t := table.Table{
		Look: as,
		Columns: []table.Column{table.Name("MACHINE GOES"), table.Name("GROUP"), table.Name("STATE"),
			table.Name("UNTIL"), table.Prose("WHY")},
	}
	for _, d := range departures {
		state := table.Cell{Text: "warning"}
		switch {
		case d.Leaving:
			state = table.Cell{Text: "LEAVING", Style: table.Warn}
		case d.Certain:
			state = table.Cell{Text: "goes", Style: table.Warn}
		}
		until := unknownCell
		if d.Deadline != nil {
			until = d.Deadline.UTC().Format(time.TimeOnly)
		}
		t.Add(table.Cell{Text: d.Pod}, table.Cell{Text: d.Group}, state, table.Cell{Text: until},
			table.Cell{Text: d.Sign + ": " + d.Message})
	}
	p.Line("", "")
	t.Write(p)
}
