package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"heliostat.dev/heliostat/internal/planner"
)

// judged is one instance with the price of each planner's plan and the lower bound of any plan's price.
type judged struct {
	name        string
	bound       float64 // dollars per hour, like the prices
	ray, ours   float64
	raySec, sec float64 // CPU seconds of one decision
}

// judge lets both planners plan an instance, in which all demand can be served.
func judge(s planner.Snapshot, ray *rayPlanner, bounder *priceBounder) (judged, error) {
	rays, raySec, err := ray.plan(s)
	if err != nil {
		return judged{}, err
	}
	plan, sec, err := measure(s)
	if err != nil {
		return judged{}, err
	}
	ours := answerOf(s, plan)
	if rays.unserved()+ours.unserved() > 0 {
		return judged{}, fmt.Errorf(
			"instance %s: Ray leaves %d unserved and Heliostat %d: prices do not compare",
			s.Name,
			rays.unserved(),
			ours.unserved(),
		)
	}
	bound, err := bounder.bound(s)
	if err != nil {
		return judged{}, err
	}
	if cheapest := min(rays.price(s), ours.price(s)); cheapest < bound*(1-cent) {
		return judged{}, fmt.Errorf(
			"instance %s: a plan for %.3f is below the bound %.3f, which is wrong then",
			s.Name,
			cheapest,
			bound,
		)
	}
	return judged{name: s.Name, bound: bound, ray: rays.price(s), ours: ours.price(s), raySec: raySec, sec: sec}, nil
}

// quality prints, for a set of instances, how far the prices of both planners are above the bound.
func quality(
	ctx context.Context,
	out io.Writer,
	set kindsOfGPU,
	snapshots []planner.Snapshot,
	ray *rayPlanner,
	bounder *priceBounder,
) error {
	var all []judged
	for _, s := range snapshots {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := clone(s)
		if err != nil {
			return err
		}
		j, err := judge(s, ray, bounder)
		if err != nil {
			return err
		}
		all = append(all, j)
	}
	fmt.Fprintf(out, "\nPrice over the lower bound, %s, %d instances\n\n", set, len(all))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tp50\tp90\tmax\ttotal / total\tms p50\tms max\t")
	writeRow(table, "Ray", all, func(j judged) float64 { return j.ray }, func(j judged) float64 { return j.raySec })
	writeRow(table, "Heliostat", all, func(j judged) float64 { return j.ours }, func(j judged) float64 { return j.sec })
	if err := table.Flush(); err != nil {
		return err
	}
	return listDearer(out, all)
}

// writeRow writes one planner's row.
func writeRow(out io.Writer, name string, all []judged, price, seconds func(judged) float64) {
	var ratios, millis []float64
	var total, bounds float64
	for _, j := range all {
		ratios = append(ratios, price(j)/j.bound)
		millis = append(millis, 1000*seconds(j))
		total += price(j)
		bounds += j.bound
	}
	slices.Sort(ratios)
	slices.Sort(millis)
	fmt.Fprintf(
		out,
		"%s\t%.3f\t%.3f\t%.3f\t%.4f\t%.2f\t%.2f\t\n",
		name,
		quantile(
			ratios,
			0.5,
		),
		quantile(ratios, 0.9),
		quantile(ratios, 1),
		total/bounds,
		quantile(millis, 0.5),
		quantile(millis, 1),
	)
}

// quantile returns the smallest of the sorted values that at least this share of them does not exceed.
func quantile(sorted []float64, share float64) float64 {
	i := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[max(i, 0)]
}

// cent is how much equal prices may differ, because they are sums of floats.
const cent = 1e-6

// listDearer names the instances on which Heliostat is more expensive than Ray.
func listDearer(out io.Writer, all []judged) error {
	dearer := slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return j.ours <= j.ray*(1+cent) })
	cheaper := 0
	for _, j := range all {
		if j.ours < j.ray*(1-cent) {
			cheaper++
		}
	}
	_, err := fmt.Fprintf(
		out,
		"\nHeliostat is cheaper on %d, equal on %d, dearer on %d\n",
		cheaper,
		len(all)-cheaper-len(dearer),
		len(dearer),
	)
	for _, j := range dearer {
		fmt.Fprintf(out, "  %s: bound %.3f, Ray %.3f, Heliostat %.3f\n", j.name, j.bound, j.ray, j.ours)
	}
	return err
}
