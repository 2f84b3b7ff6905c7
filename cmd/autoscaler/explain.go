package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/planner"
)

// explainFlags are what `explain` is asked.
type explainFlags struct {
	snapshot, output, policy string
	demand, group, pod       string
}

func newExplainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain --snapshot FILE|- (--demand JSON | --group NAME | --pod NAME)",
		Short: "Says why a demand waits, a group has its size, or a pod stays or goes",
		Long: "Plans a snapshot offline, as `autoscaler plan` does, and says of one demand, one group or one pod what the plan does with\n" +
			"it, which groups were considered, and why each was taken or not. Where fewer tasks wait for a demand than it counts,\n" +
			"it is planned as if so many did: it answers what would happen.",
		Example: exampleSnapshot + `  autoscaler explain --snapshot s.json --demand '{"GPU": 1}'
  autoscaler explain --snapshot s.json --demand '{"resources": {"GPU": 1}, "count": 4, "labelSelectors": [{"zone": "in(a,b)"}]}'
  autoscaler explain --snapshot s.json --group gpu
  autoscaler explain --snapshot - --pod gpu-7 -o json < s.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	cmd.Flags().StringVar(&flags.snapshot, "snapshot", "", "the snapshot file, or - for standard input")
	cmd.Flags().StringVar(&flags.demand, "demand", "", "what one task or bundle asks for, a JSON object")
	cmd.Flags().StringVar(&flags.group, "group", "", "the worker group's name")
	cmd.Flags().StringVar(&flags.pod, "pod", "", "the pod's name")
	cmd.Flags().StringVar(&flags.policy, "policy", "", policyHelp)
	cmd.Flags().StringVarP(&flags.output, "output", "o", "text", "text or json")
	return cmd
}

func (f explainFlags) run(cmd *cobra.Command) error {
	write, ok := map[string]func(io.Writer, planner.Explanation) error{"text": writeExplanation, "table": writeExplanation, "json": writeJSON[planner.Explanation]}[f.output]
	if !ok {
		return badInput{fmt.Errorf("--output %q: want text or json", f.output)}
	}
	if len(nonEmpty(f.demand, f.group, f.pod)) != 1 {
		return badInput{errors.New("want exactly one of --demand, --group and --pod")}
	}
	snapshot, _, err := readSnapshot(f.snapshot, cmd)
	if err != nil {
		return badInput{err}
	}
	policy, err := policyFor(f.policy, snapshot)
	if err != nil {
		return badInput{err}
	}
	explanation, err := f.explain(snapshot, policy)
	if err != nil {
		return badInput{err}
	}
	if err := write(cmd.OutOrStdout(), explanation); err != nil {
		return fmt.Errorf("writing the explanation: %w", err)
	}
	return nil
}

func (f explainFlags) explain(s planner.Snapshot, policy planner.Policy) (planner.Explanation, error) {
	if f.demand != "" {
		request, err := planner.ReadRequest(f.demand, "--demand")
		if err != nil {
			return planner.Explanation{}, err
		}
		return planner.ExplainDemand(s, policy, request), nil
	}
	flag, name, known := "--group", f.group, make([]string, 0, len(s.Groups))
	explain := planner.ExplainGroup
	for _, g := range s.Groups {
		known = append(known, g.Name)
	}
	if f.pod != "" {
		flag, name, known, explain = "--pod", f.pod, known[:0], planner.ExplainPod
		for _, n := range s.Nodes {
			known = append(known, n.Pod)
		}
	}
	explanation, ok := explain(s, policy, name)
	if !ok {
		return explanation, fmt.Errorf("%s: %q: want %s", flag, name, oneOf(known))
	}
	return explanation, nil
}

// oneOf lists the first of the names that would do.
func oneOf(names []string) string {
	const most = 8
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "one that the snapshot has; it has none"
	case len(names) > most:
		return fmt.Sprintf("one that the snapshot has: %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "one that the snapshot has: " + strings.Join(names, ", ")
}

func writeExplanation(out io.Writer, e planner.Explanation) error {
	var p page
	p.line("", fmt.Sprintf("%s: %s: %s", e.About, e.Code, e.Message))
	for _, d := range e.Details {
		p.line("  ", fmt.Sprintf("%s: %s: %s", d.About, d.Code, d.Message))
	}
	_, err := io.WriteString(out, p.String())
	return err
}

func writeJSON[T any](out io.Writer, value T) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
