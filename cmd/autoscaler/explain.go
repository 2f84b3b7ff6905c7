package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

type explainFlags struct {
	server                             cli.ServerFlags
	output                             string
	snapshot                           string
	demand, group, pod, gang, requests string
	nodes                              cli.NodeReaderFlags
}

// questionFlags are the flags of which each asks about one thing.
var questionFlags = []string{"demand", "group", "pod", "gang", "request"}

func newExplainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use: "explain (RAYCLUSTER | --snapshot FILE|-) " +
			"(--demand JSON | --group NAME | --pod NAME | --gang ID | --request ID)",
		Short: "Explains why demand is pending, why a group has its size, or why a pod stays or leaves",
		Long: "Explains what the plan does with one demand, group, pod, placement group or request, which\n" +
			"groups it considered, and why it chose each of them or not. It plans the last snapshot of a\n" +
			"RayCluster or, offline, a snapshot file, as `autoscaler plan` does.\n" +
			"\n" +
			"If --demand counts more tasks than are waiting, the plan assumes that so many wait: the answer\n" +
			"says what would happen.\n" +
			"\n" +
			"Demand with the verdict trying waits for pods of which nothing shows that a node can hold them, or\n" +
			"whose labels in Ray are not known: the plan launches one replica at a time to find out.\n\n" +
			cli.ServerHelp,
		Example: exampleSnapshot + `  autoscaler explain --snapshot s.json --demand '{"GPU": 1}'
  autoscaler explain --snapshot s.json --demand '{"resources": {"GPU": 1}, "count": 4, ` +
			`"labelSelectors": [{"zone": "in(a,b)"}]}'
  autoscaler explain --snapshot s.json --group gpu
  autoscaler explain --snapshot - --pod gpu-7 -o json < s.json
  autoscaler explain ml/llm --group gpu`,
		Args: cli.Arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
	}
	flags.server.AddTo(cmd)
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	cmd.Flags().StringVarP(&flags.snapshot, "snapshot", "f", "", "a snapshot file, or - for standard input, instead "+
		"of a RayCluster")
	cmd.Flags().StringVar(&flags.demand, "demand", "", "what one task, bundle or placement group requests, a JSON "+
		"object")
	cmd.Flags().StringVar(&flags.group, "group", "", "the worker group's name")
	cmd.Flags().StringVar(&flags.pod, "pod", "", "the pod's name")
	cmd.Flags().StringVar(&flags.gang, "gang", "", "the id of a pending placement group")
	cmd.Flags().StringVar(&flags.requests, "request", "",
		"the id of an owned request, or request_resources for the one without an owner")
	flags.nodes.AddTo(cmd.Flags())
	cmd.MarkFlagsOneRequired(questionFlags...)
	cmd.MarkFlagsMutuallyExclusive(questionFlags...)
	flags.server.ExcludedBy("snapshot", cmd)
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, args []string) error {
	question, err := f.question(cmd)
	if err != nil {
		return cli.BadInput(err)
	}
	var explanation planner.Explanation
	if len(args) == 1 {
		explanation, err = f.online(cmd, args[0], question)
	} else {
		explanation, err = f.offline(cmd, question)
	}
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, explanation, printer.WriteExplanation)
}

func (f *explainFlags) question(cmd *cobra.Command) (planner.Question, error) {
	for _, name := range questionFlags {
		if asked := cmd.Flags().Lookup(name); asked.Changed && asked.Value.String() == "" {
			return planner.Question{}, fmt.Errorf("--%s: it is empty: want %s", name, asked.Usage)
		}
	}
	q := planner.Question{Group: f.group, Pod: f.pod, Gang: f.gang, Request: f.requests}
	if f.demand == "" {
		return q, nil
	}
	return snapshotfile.ReadDemand(f.demand, "--demand")
}

func (f *explainFlags) online(cmd *cobra.Command, cluster string, q planner.Question) (planner.Explanation, error) {
	switch {
	case f.snapshot != "":
		return planner.Explanation{}, cli.BadInput(besideCluster("--snapshot", f.snapshot, cluster))
	case f.nodes.Given():
		return planner.Explanation{}, cli.BadInput(cli.ErrServerReadsNodes)
	case q.AskedGang != nil:
		return planner.Explanation{}, cli.BadInput(
			errors.New("a gang in --demand needs --snapshot; one that waits is asked for by --gang"))
	}
	key, api, err := f.server.Target(cluster)
	if err != nil {
		return planner.Explanation{}, err
	}
	explanation, err := api.Explain(cmd.Context(), key, q)
	problem, answered := errors.AsType[*apiv1.Problem](err)
	// If something is not found, the reason may be that Ray's state is old.
	if err == nil || answered && problem.Status == http.StatusNotFound {
		noteStaleness(cmd, api, key)
	}
	return explanation, err
}

func (f *explainFlags) offline(cmd *cobra.Command, q planner.Question) (planner.Explanation, error) {
	if f.snapshot == "" {
		return planner.Explanation{}, cli.BadInput(errNothingToPlan)
	}
	reader, err := f.nodes.Reader()
	if err != nil {
		return planner.Explanation{}, err
	}
	snapshot, _, findings, err := readSnapshotBy(reader, f.snapshot, cmd)
	if err != nil {
		return planner.Explanation{}, cli.BadInput(err)
	}
	warn(cmd, findings)
	explanation, err := planner.Explain(snapshot, snapshot.Policy, q)
	if _, unknown := errors.AsType[*planner.UnknownError](err); unknown {
		err = cli.BadInput(fmt.Errorf("--%w", err))
	}
	return explanation, err
}
