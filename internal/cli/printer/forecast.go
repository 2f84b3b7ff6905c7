package printer

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// WriteForecast writes a forecast for people.
func WriteForecast(as table.Look) func(io.Writer, apiv1.Forecast) error {
	return func(out io.Writer, f apiv1.Forecast) error {
		var p table.Page
		switch {
		case f.Mode == apiv1.ForecastOff:
			p.Line("", "This Heliostat does not forecast; serve --forecast=suggest does.")
		case f.Since == nil:
			p.Line("", "There is no history of demand yet.")
		default:
			since := f.Since.UTC().Format("2006-01-02 15:04 UTC")
			if f.Mode == apiv1.ForecastAct {
				p.Line("", "By the demand since "+since+". Heliostat keeps it ready, within the policy's budget.")
			} else {
				line := "Suggestions, by the demand since " + since + ". Heliostat keeps nothing ready"
				if f.WhyNotKept != "" {
					line += ": " + f.WhyNotKept
				}
				p.Line("", line+".")
			}
			if f.NotStored != "" {
				p.Line("", "This history is lost when Heliostat's process ends: "+f.NotStored+".")
			}
			writeKept(&p, f.Groups, as)
			writeReplayed(&p, f.Groups, as)
		}
		_, err := io.WriteString(out, p.String())
		return err
	}
}

func writeKept(p *table.Page, groups []apiv1.ForecastGroup, as table.Look) {
	p.Line("", "")
	t := table.Table{
		Look: as,
		Columns: []table.Column{table.Name("GROUP"), table.Number("NEEDED"), table.Number("READY"),
			table.Number("KEEP"), table.Number("START"), table.Prose("WHY")},
	}
	for _, g := range groups {
		kept := table.Cell{Text: strconv.Itoa(g.Keep)}
		if g.Keep > g.Ready {
			kept.Style = table.Warn
		}
		start := (time.Duration(g.StartSeconds) * time.Second).String()
		if g.StartAssumed {
			start = "about " + start
		}
		t.Add(table.Cell{Text: g.Name}, numberCell(g.Needed), numberCell(g.Ready), kept, table.Cell{Text: start},
			table.Cell{Text: g.Why})
	}
	t.Write(p)
}

func writeReplayed(p *table.Page, groups []apiv1.ForecastGroup, as table.Look) {
	t := table.Table{
		Look: as,
		Columns: []table.Column{table.Name("GROUP"), table.Number("WAITED"), table.Number("SAVED"),
			table.Number("WORKERS"), table.Number("PRICE"), table.Prose("IN THE LAST WEEK")},
	}
	replayed := false
	for _, g := range groups {
		if g.Replay == nil {
			continue
		}
		replayed = true
		price := table.Cell{Text: "-"}
		if g.Replay.Price != nil {
			price.Text = fmt.Sprintf("%.2f", *g.Replay.Price)
		}
		saved := table.Cell{Text: hours(g.Replay.SavedHours)}
		if g.Replay.Pays {
			saved.Style = table.Good
		}
		t.Add(table.Cell{Text: g.Name}, table.Cell{Text: hours(g.Replay.WaitedHours)}, saved,
			table.Cell{Text: hours(g.Replay.WorkerHours)}, price, table.Cell{Text: g.Replay.Why})
	}
	if replayed {
		p.Line("", "")
		t.Write(p)
	}
}

// hours writes hours of workers or of waiting.
func hours(h float64) string { return fmt.Sprintf("%.1f h", max(h, 0)) }
