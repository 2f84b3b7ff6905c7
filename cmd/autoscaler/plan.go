package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/internal/snapshotfile/manifests"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

type planFlags struct {
	server                   cli.ServerFlags
	output, whatIf, snapshot string
	nodes                    cli.NodeReaderFlags
}

// errNothingToPlan is the error of a command line with neither a RayCluster nor a file.
var errNothingToPlan = errors.New("want a RayCluster, or --snapshot with a file or - for standard input")

// exampleSnapshot writes the file that the examples of plan and explain read. You can paste it with its indentation,
// unlike a here-document, whose end must not be indented.
const exampleSnapshot = `  echo '{"groups": [
      {"name": "cpu", "resources": {"CPU": 16, "memory": 68719476736}, "price": 0.8},
      {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "labels": {"zone": "b"}, "maxReplicas": 2, "price": 3.673}],
    "nodes": [{"pod": "gpu-7", "group": "gpu", "state": "RUNNING", "total": {"CPU": 8, "GPU": 1}, ` +
	`"available": {"CPU": 8}}],
    "pendingRequests": [{"resources": {"GPU": 1}, "count": 4}, {"resources": {"CPU": 16}, "count": 1}]}' > s.json

`

func newPlanCommand() *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "plan (--snapshot FILE|- | RAYCLUSTER [--what-if FILE|-])",
		Short: "Shows the plan for a snapshot or a RayCluster, or for a what-if change, and explains it",
		Long: "Plans a snapshot file offline, by the policy in the snapshot, as the live autoscaler does. The\n" +
			"snapshot can contain a RayCluster manifest under the key rayCluster in place of its groups.\n" +
			"docs/reference/plan.md lists all keys of a snapshot.\n" +
			"\n" +
			"The live autoscaler may do less than the plan for a while: it limits how many pods are on their\n" +
			"way, it waits a moment before it serves a new placement group, and Ray may refuse a drain.\n" +
			"\n" +
			"Given a RayCluster, the server plans its last snapshot. --what-if changes something in it, such\n" +
			"as groups or demand. Nothing is written.\n\n" + cli.ServerHelp,
		Example: exampleSnapshot + `  autoscaler plan --snapshot s.json -o table
  autoscaler plan --snapshot - < s.json
  echo '{"groups": [{"name": "gpu", "maxReplicas": 8}]}' | autoscaler plan ml/llm --what-if - -o table`,
		Args: cli.Arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return flags.runLive(cmd, args[0])
			}
			if flags.whatIf != "" {
				return cli.BadInput(errors.New("--what-if is for a RayCluster: want NAME or NAMESPACE/NAME beside " +
					"it, or --snapshot in its place"))
			}
			return flags.run(cmd)
		},
	}
	flags.server.AddTo(cmd)
	cli.Output(cmd.Flags(), &flags.output, "json", "table", "wide", "yaml")
	cmd.Flags().StringVar(&flags.whatIf, "what-if", "", "with a RayCluster: a file with changes, in the format of a "+
		"snapshot, or - for standard input")
	cmd.Flags().StringVarP(&flags.snapshot, "snapshot", "f", "", "the snapshot file, or - for standard input")
	flags.nodes.AddTo(cmd.Flags())
	flags.server.ExcludedBy("snapshot", cmd)
	cmd.MarkFlagsMutuallyExclusive("snapshot", "what-if")
	return cmd
}

func (f planFlags) run(cmd *cobra.Command) error {
	if f.snapshot == "" {
		return cli.BadInput(errNothingToPlan)
	}
	reader, err := f.nodes.Reader()
	if err != nil {
		return err
	}
	snapshot, cluster, findings, err := readSnapshotBy(reader, f.snapshot, cmd)
	if err != nil {
		return cli.BadInput(err)
	}
	if f.output == "json" || f.output == "yaml" { // the text lists all findings
		warn(cmd, findings)
	}
	plan := planner.Compute(snapshot, snapshot.Policy)
	plan.Findings = append(findings, plan.Findings...)
	if cluster != nil {
		manifests.AddNumGPUs(&plan, cluster)
	}
	if err := printer.Write(cmd.OutOrStdout(), f.output, plan, printer.WritePlanText); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// readSnapshotBy reads a snapshot with the RayCluster in it, nil if the file lists groups instead, and returns findings
// about both. reader reads the nodes in the file.
func readSnapshotBy(reader sharing.Reader, file string, cmd *cobra.Command) (planner.Snapshot,
	*nodepool.Cluster, []raydemand.Finding, error) {
	in, name := cmd.InOrStdin(), "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return planner.Snapshot{}, nil, nil, fmt.Errorf("opening snapshot: %w", err)
		}
		defer opened.Close() //nolint:errcheck // it was only read
		in, name = opened, file
	}
	doc, err := snapshotfile.ReadDocument(in, name)
	if err != nil {
		return planner.Snapshot{}, nil, nil, err
	}
	if doc.RayCluster == nil {
		return doc.Snapshot, nil, doc.Findings, nil
	}
	cluster, err := manifests.Cluster(reader, doc)
	if err != nil {
		return planner.Snapshot{}, nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return manifests.Fill(doc.Snapshot, cluster), &cluster, append(doc.Findings, cluster.Findings...), nil
}

// warn writes the findings about unknown keys, which do not stop the plan, to standard error.
func warn(cmd *cobra.Command, findings []raydemand.Finding) {
	for _, f := range findings {
		if f.Code == planner.FindingKeyUnknown {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: %s\n", cmd.Root().Name(),
				printer.Printable(printer.DescribeFinding(f)))
		}
	}
}

// besideCluster is the error of a flag for snapshot files on a command line with a RayCluster.
func besideCluster(flag, value, cluster string) error {
	return fmt.Errorf("%s %q cannot be combined with a RayCluster, here %q: want one of the two", flag, value, cluster)
}

// runLive asks the server for the plan of a RayCluster, with the changes of --what-if if there are any.
func (f planFlags) runLive(cmd *cobra.Command, argument string) error {
	switch {
	case f.snapshot != "":
		return cli.BadInput(besideCluster("--snapshot", f.snapshot, argument))
	case f.nodes.Given():
		return cli.BadInput(cli.ErrServerReadsNodes)
	}
	supposition, err := f.supposition(cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	key, api, err := f.server.Target(argument)
	if err != nil {
		return err
	}
	answer, err := api.Plan(cmd.Context(), key, supposition)
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, answer, printer.WritePlanText)
}

// supposition returns the body of the call; an empty object stands for the present plan.
func (f planFlags) supposition(stdin io.Reader) (json.RawMessage, error) {
	if f.whatIf == "" {
		return json.RawMessage("{}"), nil
	}
	return bodyOfFile(f.whatIf, "the what-if changes", stdin)
}

// mostBody limits a file with the body of a call, in bytes: YAML with comments around as much JSON as a server accepts.
const mostBody = 4 << 20

// bodyOfFile reads the body of a call, JSON or YAML; what names it in errors.
func bodyOfFile(name, what string, stdin io.Reader) (body json.RawMessage, err error) {
	err = cli.ReadFile(name, what, stdin, mostBody, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		body, err = decode.OneDocument(text)
		if err == nil && string(body) == "null" {
			err = errors.New("it is empty: want the body of a call, as JSON or YAML")
		}
		return err
	})
	return body, err
}
