package printer

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// WriteGiveBack writes what a cluster gives back, and what becomes of each worker.
func WriteGiveBack(p *Page, s giveback.State) {
	done := fmt.Sprintf("%d of %s are given back", s.Given, giveback.GPUs(s.GPUs))
	if s.Given == 0 && (len(s.Workers) == 0 || s.Workers[0].State == "") {
		done = "only shown: nothing is given back"
	}
	p.Line("", fmt.Sprintf("%s, deadline %s: %s. Meanwhile the groups have at most %s.", s.Reservation.String(),
		s.Deadline.UTC().Format(time.RFC3339), done, giveback.GPUs(s.Hold)))
	p.Line("", "")
	t := newTable("POD", "GROUP", "GPUS", "STATE", "WHY THIS ONE")
	for _, w := range s.Workers {
		t.Add(w.Pod, w.Group, w.GPUs, w.State, w.Why)
	}
	t.Write(p)
}
