package printer

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// WriteGiveBack writes what a cluster gives back, and what becomes of each worker.
func WriteGiveBack(out io.Writer, s giveback.State) error {
	var p Page
	done := fmt.Sprintf("%d of %s are given back", s.Given, giveback.GPUs(s.GPUs))
	if s.Given == 0 && (len(s.Workers) == 0 || s.Workers[0].State == "") {
		done = "only shown: nothing is given back"
	}
	p.Line("", fmt.Sprintf("%s, deadline %s: %s. Meanwhile the groups have at most %s.", s.Reservation.String(),
		s.Deadline.UTC().Format(time.RFC3339), done, giveback.GPUs(s.Hold)))
	p.Line("", "")
	t := Table{Columns: []Column{Name("POD"), Name("GROUP"), Number("GPUS"), Text("STATE"), Prose("WHY THIS ONE")}}
	for _, w := range s.Workers {
		t.Add(Cells(w.Pod, w.Group, strconv.FormatInt(w.GPUs, 10), w.State, w.Why)...)
	}
	t.Write(&p)
	_, err := io.WriteString(out, p.String())
	return err
}
