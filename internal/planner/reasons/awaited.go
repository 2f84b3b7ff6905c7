package reasons

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// unknownIn names what is not known about the announcements of new pods, and why.
func unknownIn(awaited []fleet.Awaited, gang *fleet.Gang) string {
	parts := make([]string, len(awaited))
	for i, a := range awaited {
		parts[i] = fmt.Sprintf("it is unknown whether its pods will have %s: %s", a, a.Why)
		if a.Must.Key == "" {
			parts[i] = fmt.Sprintf("it is unknown which value of the gang's topology label %s its pods will have: %s",
				gang.TopologyLabel, a.Why)
		}
	}
	return strings.Join(parts, "; ")
}

// undecidedFix says what to set so that the announcements of a group's pods are known.
func undecidedFix(a fleet.Awaited, gang *fleet.Gang) string {
	shown := ""
	if len(a.Shown) > 0 {
		var values []string
		for _, value := range a.Shown {
			if value == "" {
				value = "none"
			}
			values = append(values, value)
		}
		shown = "its workers have shown " + strings.Join(values, " and ") + "; "
	}
	if a.Must.Key == "" {
		return shown + "Kubernetes chooses where a new pod runs, so pin one group to each value by its nodeSelector"
	}
	return shown + "pin the group by its nodeSelector, or set the label in the group's labels"
}
