package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller"
)

// TestIntervalsAreThoseOfTheLoop compares the table of intervals in docs/operations.md with what the loop computes from
// the default flags.
func TestIntervalsAreThoseOfTheLoop(t *testing.T) {
	settings := controller.Config{
		FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 },
	}
	row := regexp.MustCompile(`(?m)^\| ([\d,]+) \| ([\d.]+ s) \| ([\d.]+ s) \|$`)
	rows := row.FindAllStringSubmatch(between(t, "docs/operations.md", "\n## Intervals\n", "\n## "), -1)
	if len(rows) < 5 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	for _, cells := range rows {
		clusters, err := strconv.Atoi(strings.ReplaceAll(cells[1], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{settings.IdleInterval(clusters), settings.IdleStands(clusters)} {
			got, err := time.ParseDuration(strings.ReplaceAll(cells[2+i], " ", ""))
			if err != nil || got != want {
				t.Errorf("%s RayClusters: the table says %s, the loop %v", cells[1], cells[2+i], want)
			}
		}
	}
}
