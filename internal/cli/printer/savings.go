package printer

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// WriteSavings writes a row for each change, and then how to make it. Without all, it leaves out changes that would
// have saved nothing, and those that are not the best of their kind for their group.
func WriteSavings(as table.Look, all bool) func(io.Writer, apiv1.Savings) error {
	return func(out io.Writer, s apiv1.Savings) error {
		var p table.Page
		items := s.Items
		if !all {
			items = bestSavings(items)
		}
		if len(items) == 0 {
			p.Line("", "Nothing is known that would have cost less since "+table.Moment(s.Since)+".")
			_, err := io.WriteString(out, p.String())
			return err
		}
		t := table.Table{Look: as, Columns: []table.Column{table.Number("#"), table.Name("RAYCLUSTER"),
			table.Name("GROUP"), table.Prose("CHANGE"), table.Number("COST " + s.Currency), table.Number("INSTEAD"),
			table.Number("GPU-HOURS"), table.Number("STARTS"), table.Number("WAITING")}}
		for n, i := range items {
			t.Add(table.Cells(strconv.Itoa(n+1), i.Namespace+"/"+i.Cluster, i.Group, savingText(i), money(i.Cost),
				money(i.WouldCost), fmt.Sprintf("%+.1f", -i.SavedGpuSeconds/time.Hour.Seconds()),
				fmt.Sprintf("%+.0f", i.MoreStarts), waitingText(i))...)
		}
		t.Write(&p)
		for n, i := range items {
			p.Line("", "")
			p.Line("", fmt.Sprintf("%d: %s (since %s)", n+1, i.Why, table.Moment(i.Since)))
			p.Line("  ", i.Change)
		}
		_, err := io.WriteString(out, p.String())
		return err
	}
}

// bestSavings returns the changes that would have saved something, the best of each kind for each group. The items come
// in the order of what they save.
func bestSavings(items []apiv1.SavingItem) (best []apiv1.SavingItem) {
	seen := map[[4]string]bool{}
	for _, i := range items {
		kind := [4]string{i.Namespace, i.Cluster, i.Group, i.Kind}
		saves := i.Saves >= 0.005 || i.UnpricedPodSeconds > 0 && i.SavedPodSeconds+i.SavedGpuSeconds > 0
		if saves && !seen[kind] {
			seen[kind] = true
			best = append(best, i)
		}
	}
	return best
}

// savingText names a change in a few words.
func savingText(i apiv1.SavingItem) string {
	span := func(seconds float64) string {
		if seconds == 0 {
			return "none"
		}
		text := (time.Duration(seconds) * time.Second).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		return text
	}
	switch i.Kind {
	case "manage":
		return "managed, idle timeout " + span(i.To)
	case "idle_timeout":
		return "idle timeout " + span(i.From) + " to " + span(i.To)
	case "min_replicas":
		return "minReplicas " + number(i.From) + " to " + number(i.To)
	case "keep_warm":
		return "keepWarm " + number(i.From) + " to " + number(i.To)
	case "smaller_workers":
		return "GPUs of a worker " + number(i.From) + " to " + number(i.To)
	case "slices":
		return "slice: GPUs " + number(i.From) + " to " + number(i.To)
	}
	return i.Kind + " " + number(i.From) + " to " + number(i.To)
}

func waitingText(i apiv1.SavingItem) string {
	text := (time.Duration(i.MoreWaitedSeconds) * time.Second).String()
	if i.MoreWaitedSeconds >= 0 {
		text = "+" + text
	}
	if i.StartAssumed {
		return "about " + text
	}
	return text
}

// WriteSavingsCSV writes all changes, with a header line, for spreadsheets.
func WriteSavingsCSV(out io.Writer, s apiv1.Savings) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"namespace", "cluster", "group", "kind", "from", "to", "since", "cost", "would_cost", "saves",
		"currency", "saved_gpu_seconds", "saved_pod_seconds", "unpriced_pod_seconds", "more_starts",
		"more_waited_seconds", "start_assumed", "why", "change"}}
	for _, i := range s.Items {
		rows = append(rows, []string{i.Namespace, i.Cluster, i.Group, i.Kind, number(i.From), number(i.To),
			i.Since.UTC().Format(time.RFC3339), number(i.Cost), number(i.WouldCost), number(i.Saves), s.Currency,
			number(i.SavedGpuSeconds), number(i.SavedPodSeconds), number(i.UnpricedPodSeconds), number(i.MoreStarts),
			number(i.MoreWaitedSeconds), strconv.FormatBool(i.StartAssumed), i.Why, i.Change})
	}
	return w.WriteAll(rows)
}
