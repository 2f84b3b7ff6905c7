package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"heliostat.dev/heliostat/internal/planner"
)

// kind is one way in which plans differ: the aspect and its causes.
type kind struct {
	aspect aspect
	causes string
}

// tally counts differences.
type tally struct {
	snapshots int
	// undecided counts the plans for which the search did not find in time whether the served demand fits.
	undecided int
	counts    map[kind]int
	// first is the name of the first snapshot of each kind.
	first map[kind]string
	// open lists the snapshots with an unexplained difference, and the difference.
	open []unexplained
}

type unexplained struct {
	snapshot planner.Snapshot
	finding  finding
}

// count compares the plans of all snapshots.
func (d duel) count(ctx context.Context, snapshots []planner.Snapshot) (tally, error) {
	t := tally{counts: map[kind]int{}, first: map[kind]string{}}
	for _, s := range snapshots {
		if err := ctx.Err(); err != nil {
			return tally{}, err
		}
		s, err := clone(s)
		if err != nil {
			return tally{}, err
		}
		findings, err := d.trace(s)
		if err != nil {
			return tally{}, err
		}
		t.snapshots++
		fits, decided := feasible(s, answerOf(s, planner.Compute(s, s.Policy)))
		if !fits {
			findings = append(findings, finding{difference{overfull, "what is said to be served does not fit"}, nil})
		}
		if !decided {
			t.undecided++
		}
		for _, f := range findings {
			t.add(s, f)
		}
	}
	return t, nil
}

func (t *tally) add(s planner.Snapshot, f finding) {
	k := kind{f.aspect, strings.Join(f.causes, " + ")}
	if t.counts[k] == 0 {
		t.first[k] = s.Name
	}
	t.counts[k]++
	if !f.aspect.better() && len(f.causes) == 0 {
		t.open = append(t.open, unexplained{s, f})
	}
}

// write prints the counts, the most frequent first.
func (t *tally) write(out io.Writer) error {
	fmt.Fprintf(
		out,
		"\nPlans of Ray and Heliostat for %d random snapshots. "+
			"An exhaustive search finds that what Heliostat says it serves\n"+
			"fits (not decided: %d). What differs, by cause (docs/design/0003-differences-from-ray.md):\n\n",
		t.snapshots,
		t.undecided,
	)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "Heliostat, compared with Ray\tcause\tsnapshots\tthe first")
	kinds := slices.SortedFunc(maps.Keys(t.counts), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.aspect, b.aspect), cmp.Compare(t.counts[b], t.counts[a]),
			cmp.Compare(a.causes, b.causes))
	})
	for _, k := range kinds {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", k.aspect, cmp.Or(k.causes, "–"), t.counts[k], t.first[k])
	}
	return table.Flush()
}

// err returns an error if a difference has no explanation. The snapshots are then in dir.
func (t *tally) err(dir string) error {
	if len(t.open) == 0 {
		return nil
	}
	var lines []string
	for _, each := range t.open {
		if err := writeSnapshots(dir, []planner.Snapshot{each.snapshot}); err != nil {
			return err
		}
		lines = append(
			lines,
			fmt.Sprintf("%s: %s: %s", filepath.Join(dir, fileName(each.snapshot)), each.finding.aspect,
				each.finding.detail),
		)
	}
	return fmt.Errorf("%d differences from Ray have no explanation:\n%s", len(t.open), strings.Join(lines, "\n"))
}

// openDir is where snapshots with unexplained differences go.
func openDir() string { return filepath.Join(os.TempDir(), "heliostat-differences-from-ray") }
