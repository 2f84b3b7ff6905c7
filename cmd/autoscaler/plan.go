package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// planFlags are what `plan` is asked.
type planFlags struct {
	snapshot, output string
}

func newPlanCommand() *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "plan --snapshot FILE|-",
		Short: "Shows what would be decided for a snapshot, and why",
		Long: "Plans offline: reads a snapshot (a JSON file, or - for standard input), plans it as the live autoscaler does, by the\n" +
			"policy that it says, and prints the plan. The groups may come from a RayCluster manifest under the key rayCluster.\n\n" +
			"What the live autoscaler carries out of a plan can be less for a while: its bounds on pods on their way come after the\n" +
			"plan, and so does the moment that it gives a placement group just seen; every drain may be refused.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringVar(&flags.snapshot, "snapshot", "", "the snapshot file, or - for standard input")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "json", "json or text")
	return cmd
}

func (f planFlags) run(in io.Reader, out io.Writer) error {
	write, ok := map[string]func(io.Writer, planner.Snapshot, planner.Plan) error{"json": writePlanJSON, "text": writePlanText}[f.output]
	if !ok {
		return badInput{fmt.Errorf("--output %q: want json or text", f.output)}
	}
	if f.snapshot == "" {
		return badInput{fmt.Errorf("--snapshot is missing: want a file, or - for standard input")}
	}
	snapshot, findings, err := f.read(in)
	if err != nil {
		return badInput{err}
	}
	plan := planner.Compute(snapshot, snapshot.Policy)
	plan.Findings = append(findings, plan.Findings...)
	if err := write(out, snapshot, plan); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// read reads the snapshot and what is to be said about the RayCluster in it.
func (f planFlags) read(in io.Reader) (planner.Snapshot, []raydemand.Finding, error) {
	name := "standard input"
	if f.snapshot != "-" {
		file, err := os.Open(f.snapshot)
		if err != nil {
			return planner.Snapshot{}, nil, fmt.Errorf("opening snapshot: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in, name = file, f.snapshot
	}
	doc, err := planner.ReadDocument(in, name)
	if err != nil || doc.RayCluster == nil {
		return doc.Snapshot, nil, err
	}
	cluster, err := kube.DecodeCluster(doc.RayCluster)
	if err != nil {
		return planner.Snapshot{}, nil, fmt.Errorf("%s: rayCluster: %w", name, err)
	}
	return withCluster(doc.Snapshot, cluster), cluster.Findings, nil
}

// withCluster fills in from the RayCluster what the file itself leaves open.
func withCluster(s planner.Snapshot, cluster nodepool.Cluster) planner.Snapshot {
	own := planner.SnapshotOf(cluster)
	s.Groups, s.LaunchConfigCheckDisabled = own.Groups, own.LaunchConfigCheckDisabled
	s.Name, s.UpscalingMode = cmp.Or(s.Name, own.Name), cmp.Or(s.UpscalingMode, own.UpscalingMode)
	if s.IdleTimeoutSeconds == nil {
		s.IdleTimeoutSeconds = own.IdleTimeoutSeconds
	}
	if s.KeptResources == nil {
		s.KeptResources = own.KeptResources
	}
	return s
}

func writePlanJSON(out io.Writer, _ planner.Snapshot, plan planner.Plan) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(plan)
}
