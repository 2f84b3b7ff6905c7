package engine

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Comparison returns how Heliostat's plan for a cluster in shadow mode compares with the other writer.
func (r *Recorder) Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison {
	c, known := r.shadow.Comparison(key)
	if !known {
		return apiv1.ShadowComparison{}
	}
	return comparisonOf(c)
}

func comparisonOf(c Comparison) apiv1.ShadowComparison {
	since := c.Since.UTC()
	answer := apiv1.ShadowComparison{Writer: c.Writer, Since: &since, ComparedSeconds: c.Compared.Seconds()}
	if c.Compared > 0 {
		agreement := c.Agreed.Seconds() / c.Compared.Seconds()
		answer.Agreement = &agreement
	}
	for _, g := range c.Groups {
		answer.Groups = append(answer.Groups,
			apiv1.ShadowGroup{Name: g.Name, Ours: g.Ours, Theirs: g.Theirs, Reason: g.Reason})
	}
	var leads []time.Duration
	for _, d := range c.Differences {
		answer.Differences = append(answer.Differences, differenceOf(d))
		switch d.Outcome {
		case OursFirst:
			answer.OursFirst++
			leads = append(leads, d.Lead)
		case TheirsFirst:
			answer.TheirsFirst++
			leads = append(leads, d.Lead)
		}
	}
	if len(leads) > 0 {
		slices.Sort(leads)
		median := leads[len(leads)/2].Seconds()
		answer.MedianLeadSeconds = &median
	}
	return answer
}

func differenceOf(d Difference) apiv1.ShadowDifference {
	answer := apiv1.ShadowDifference{At: d.At.UTC(), Group: d.Group, Ours: d.Ours, Theirs: d.Theirs,
		Outcome: apiv1.ShadowDifferenceOutcome(d.Outcome), Reason: d.Reason, Writer: d.Writer}
	if !d.Until.IsZero() {
		until := d.Until.UTC()
		answer.Until = &until
	}
	if d.Outcome == OursFirst || d.Outcome == TheirsFirst {
		lead := d.Lead.Seconds()
		answer.LeadSeconds = &lead
	}
	return answer
}
