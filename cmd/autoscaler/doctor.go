package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// doctorFlags say where `doctor` finds objects, and how it writes findings.
type doctorFlags struct {
	files  []string
	kube   cli.KubeFlags
	output string
	scope  doctorScope
	nodes  cli.NodeReaderFlags
	pools  string
	// reader is built from nodes. odd says which of several files have no objects, such as the values of Helm.
	reader sharing.Reader
	odd    []string
}

func newDoctorCommand() *cobra.Command {
	var flags doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor [RAYCLUSTER] [-n NAMESPACE] | doctor -f FILE...",
		Short: "Checks RayClusters and their nodes for problems, explains why they matter, and shows how to fix them",
		Long: "Examines a live API server, which it only reads, or manifests as `kubectl get -o yaml` or `-o\n" +
			"json` prints them: RayClusters, RayServices, RayJobs, RayCronJobs, ResourceRequests,\n" +
			"and what bounds or places their pods: nodes, other pods, Deployments,\n" +
			"LimitRanges, ResourceQuotas, disruption budgets, NodePools, ResourceSlices, objects of Kueue.\n" +
			"RAYCLUSTER is NAMESPACE/NAME, or NAME with -n. Without either, it examines all RayClusters.\n" +
			"\n" +
			"The exit status is 0 without a finding of level error, 1 with one or if the API server cannot be\n" +
			"read, and 2 for bad input.",
		Example: `  autoscaler doctor -n ml
  autoscaler doctor ml/llm
  kubectl get raycluster,pod,node -A -o json | autoscaler doctor -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.take(args); err != nil {
				return cli.BadInput(err)
			}
			return flags.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "a file with objects, YAML or JSON, or - for "+
		"standard input; can be repeated")
	cli.ClusterNamespace(cmd.Flags(), &flags.scope.Namespace, "the namespace of the RayClusters (default "+
		"all)")
	flags.kube.AddTo(cmd.Flags())
	flags.nodes.AddTo(cmd.Flags())
	cmd.Flags().StringVar(&flags.pools, "pools", "",
		"a file that describes pools: their sizes, and the nodes that a pool without nodes would have")
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	for _, name := range []string{"kubeconfig", "context", "namespace"} {
		cmd.MarkFlagsMutuallyExclusive("filename", name)
	}
	return cmd
}

// take interprets the arguments: further files if -f is given, otherwise the name of one RayCluster.
func (f *doctorFlags) take(args []string) error {
	switch {
	case len(f.files) > 0:
		f.files = append(f.files, args...)
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q: want the name of one RayCluster; files follow -f", args[1])
	case len(args) == 1:
		key, err := cli.ClusterKey(args[0], f.scope.Namespace)
		if err == nil && key.Namespace == "" {
			err = fmt.Errorf("RayCluster %q: want NAMESPACE/NAME, or its namespace with -n; files follow -f", args[0])
		}
		if err != nil {
			return err
		}
		f.scope.Namespace, f.scope.Cluster = key.Namespace, key.Name
	}
	var err error
	f.reader, err = f.nodes.Reader()
	return err
}

func (f *doctorFlags) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	input, err := f.input(ctx, in)
	if err != nil {
		return err
	}
	if input.Pools, err = cli.ReadPools(f.pools); err != nil {
		return cli.BadInput(err)
	}
	report := printer.Doctor{Findings: doctor.Examine(input), Examined: input, Note: f.missing(input)}
	if err := printer.Write(out, f.output, report, printer.WriteDoctor); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	for _, odd := range f.odd {
		if _, err := fmt.Fprintln(errOut, "Did not examine "+odd); err != nil {
			return fmt.Errorf("writing what was not examined: %w", err)
		}
	}
	if n := printer.Severe(report.Findings, raydemand.Error); n > 0 {
		return fmt.Errorf("%d %s of level error", n, printer.Plural(n, "finding"))
	}
	return nil
}

// missing returns a note if the API server, or the namespace, has nothing that Heliostat can scale.
func (f *doctorFlags) missing(input doctor.Input) string {
	ofRay := func(o doctor.Object) bool {
		return slices.Contains([]string{"RayCluster", "RayService", "RayJob", "RayCronJob"}, o.Kind)
	}
	if len(f.files) > 0 || slices.ContainsFunc(input.Objects, ofRay) {
		return ""
	}
	return "No RayClusters found."
}

// input reads the files, or lists objects from the API server if there are none.
func (f *doctorFlags) input(ctx context.Context, in io.Reader) (doctor.Input, error) {
	if len(f.files) == 0 {
		return f.live(ctx)
	}
	var objects []map[string]any
	var places []string
	var twice [][]string
	for _, name := range f.files {
		var found []map[string]any
		var at []decode.Place
		err := cli.ReadFile(name, "manifests", in, cli.MaxManifests, func(in io.Reader) (err error) {
			found, at, err = decode.ReadObjects(in)
			return err
		})
		if errors.Is(err, decode.ErrNoObject) && len(f.files) > 1 {
			f.odd = append(f.odd, err.Error()[len("reading "):])
			continue
		}
		if err != nil {
			return doctor.Input{}, cli.BadInput(err)
		}
		objects = append(objects, found...)
		for _, place := range at {
			places = append(places, fmt.Sprintf("document %d of %s", place.Document, name))
			twice = append(twice, place.Twice)
		}
	}
	of := "reading " + strings.Join(f.files, ", ")
	input, err := doctor.Read(objects, f.reader, nil)
	if err != nil {
		return input, cli.BadInput(fmt.Errorf("%s: %w", of, err))
	}
	unreadable, skipped := false, 0
	for i := range input.Objects {
		o := &input.Objects[i]
		o.Place, o.Unreadable = places[i], append(o.Unreadable, twice[i]...)
		unreadable = unreadable || len(o.Unreadable) > 0 // a finding says why
	}
	for _, n := range doctor.Skipped(input) {
		skipped += n
	}
	if skipped < len(input.Objects) || unreadable {
		return input, nil
	}
	return input, cli.BadInput(fmt.Errorf("%s: there is nothing to look at: want a RayCluster, or another kind "+
		"that `autoscaler doctor --help` lists", of))
}

// Requests to the API server per second and at once, as kubectl has them. With client-go's default of 5 a second,
// a list of each kind waited for itself most of the time.
const perSecond, atOnce = 50, 300

func (f *doctorFlags) live(ctx context.Context) (doctor.Input, error) {
	config, err := f.kube.Config()
	if err != nil {
		return doctor.Input{}, err
	}
	config.QPS, config.Burst = perSecond, atOnce
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return doctor.Input{}, fmt.Errorf("preparing to list objects: %w", err)
	}
	input, err := listObjects(ctx, client, f.scope, f.reader)
	if err != nil {
		return input, err
	}
	named := func(o doctor.Object) bool { return o.Kind == "RayCluster" }
	if f.scope.Cluster != "" && !slices.ContainsFunc(input.Objects, named) {
		return input, cli.BadInput(
			fmt.Errorf("there is no RayCluster %s in namespace %s", f.scope.Cluster, f.scope.Namespace),
		)
	}
	return input, nil
}
