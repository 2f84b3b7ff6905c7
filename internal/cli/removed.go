package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// RemovedFlags are flags that the last release had, with what to use instead. A command line, a settings file or a
// variable that sets one is an error, because the behavior that it asked for is gone.
var RemovedFlags = map[string]string{
	"breaker-cooldown":        "a failed group is not launched for 5m at first",
	"consolidate-deadline":    "the deadline of these drains is three times --consolidate-after",
	"consolidate-min-saving":  "a move must save more in an hour than it costs to launch the worker again",
	"consolidate-per-hour":    "four workers of a RayCluster may be drained per hour",
	"cycles-per-second":       "use shards for more than 400 decisions per second",
	"drain-departing":         "workers whose machine is about to go are always drained",
	"forecast":                "use schedules of a CapacityPolicy, or a longer idle timeout",
	"gcs-timeout":             "each call to a Ray head has 3s",
	"gpu-for-cpu":             "CPU-only work launches GPU groups only where no CPU group can serve it",
	"keep-costs":              "sum the counter heliostat_cost_total in Prometheus (docs/reference/costs.md)",
	"kube-api-burst":          "use --kube-api-qps; twice as many requests may be sent at once",
	"max-in-flight-per-group": "use --max-in-flight, for all groups of a RayCluster, and maxReplicas of the group",
	"plan-budget":             "the plans of a cycle take about 2s at most",
	"policy":                  "plans follow the policy in the snapshot",
	"poll-fast":               "a Ray head is read every 100ms while anything changes",
	"reads-per-second":        "use shards for more than 4000 reads per second",
	"request-memory":          "the CRD bounds a ResourceRequest; to bound their number, use a ResourceQuota",
	"since":                   "sum heliostat_cost_total in Prometheus (docs/reference/costs.md)",
	"surge":                   "give maxReplicas room for replacements above what the work needs",
	"tls-ca-file":             "put the authorities into ca.crt beside --tls-cert-file",
	"unschedulable-grace":     "use --allocation-timeout, of which it is a fifth",
	"waiting-cost":            "plans do not depend on start times; use prices, or priority of a group",
}

// RemovedCommands are commands that the last release had, with what to use instead.
var RemovedCommands = map[string]string{
	"forecast": "use schedules of a CapacityPolicy, or a longer idle timeout",
	"savings":  "use autoscaler costs, which says what is idle and why",
}

// removed says that something was removed, and what to use instead; nil if it was not.
func removed(table map[string]string, key, name string) error {
	if instead, was := table[key]; was {
		return fmt.Errorf("%s was removed; %s", name, instead)
	}
	return nil
}

// refuseRemovedKey returns an error for the key of a removed flag in a settings file.
func refuseRemovedKey(key string) error {
	for name := range RemovedFlags {
		if key == name || strings.EqualFold(key, strings.ReplaceAll(name, "-", "")) {
			return removed(RemovedFlags, name, key)
		}
	}
	return nil
}

// refuseRemovedVariables returns an error for the variables of removed flags.
func refuseRemovedVariables(known, environ []string) error {
	var errs []error
	for _, name := range unknownVariables(known, environ) {
		flag := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		errs = append(errs, removed(RemovedFlags, flag, EnvPrefix+name))
	}
	return errors.Join(errs...)
}

// RefuseRemovedFlags makes a command that ignores unknown flags refuse those that were removed.
func RefuseRemovedFlags(c *cobra.Command) {
	for _, name := range slices.Sorted(maps.Keys(RemovedFlags)) {
		f := c.Flags().VarPF(removedFlag(name), name, "", "")
		f.Hidden, f.NoOptDefVal = true, "true"
	}
}

// removedFlag is the pflag.Value of a flag that has no valid value.
type removedFlag string

func (removedFlag) String() string { return "" }
func (removedFlag) Type() string   { return "string" }

// Set returns what to use instead.
func (f removedFlag) Set(string) error { return removed(RemovedFlags, string(f), "--"+string(f)) }
