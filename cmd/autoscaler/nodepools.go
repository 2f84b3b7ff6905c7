package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// nodepoolsFlags are where `nodepools` finds nodes, and how it reads them.
type nodepoolsFlags struct {
	files      []string
	kubeconfig string
	output     string
	poolLabel  string
	resources  []string
}

func newNodepoolsCommand() *cobra.Command {
	var flags nodepoolsFlags
	cmd := &cobra.Command{
		Use:   "nodepools [-f FILE...]",
		Short: "Shows what is understood of the GPUs of each node and pool, and what is wrong with them",
		Long: "Reads nodes from the API server, or from manifests as `kubectl get nodes -o yaml` prints them, and says of each how its GPUs are\n" +
			"handed out: kind, cards, units, memory behind a unit, isolation and problems. What a node does not prove is left open.\n\n" +
			"  kubectl get nodes -o json | autoscaler nodepools -f -",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && len(flags.files) == 0 {
				return badInput{fmt.Errorf("unexpected argument %q; files follow -f", args[0])}
			}
			flags.files = append(flags.files, args...)
			return flags.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVarP(&flags.files, "filename", "f", nil, "a file with nodes, YAML or JSON, or - for standard input; more files can follow")
	cmd.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "", "the kubeconfig file; without it as kubectl finds it, or the pod's own account")
	cmd.Flags().StringVar(&flags.poolLabel, "pool-label", "", "a node label that names the pool and goes before those of the clouds")
	cmd.Flags().StringArrayVar(&flags.resources, "resource", nil, "NAME=KIND: what a resource name means that is not built in, or means something else here; "+
		"KIND is "+strings.Join(configurable(), ", "))
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "table or json")
	return cmd
}

// nodepoolsReport is what `nodepools -o json` writes; null stands for what cannot be known.
type nodepoolsReport struct {
	Nodes []nodepool.NodeGPUs `json:"nodes"`
	Pools []nodepool.GPUPool  `json:"pools"`
}

func (f nodepoolsFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	write, ok := map[string]func(io.Writer, nodepoolsReport) error{"table": writeNodepools, "json": writeJSON[nodepoolsReport]}[f.output]
	if !ok {
		return badInput{fmt.Errorf("--output %q: want table or json", f.output)}
	}
	reader := nodepool.GPUReader{PoolLabel: f.poolLabel}
	var err error
	if reader.Names.Configured, err = configuredResources(f.resources); err != nil {
		return badInput{err}
	}
	nodes, err := f.nodes(ctx, in)
	if err != nil {
		return err
	}
	slices.SortStableFunc(nodes, func(a, b nodepool.NodeObject) int { return strings.Compare(a.Name, b.Name) })
	report := nodepoolsReport{Nodes: make([]nodepool.NodeGPUs, 0, len(nodes)), Pools: reader.Pools(nodes)}
	for _, node := range nodes {
		report.Nodes = append(report.Nodes, reader.Read(node))
	}
	if err := write(out, report); err != nil {
		return fmt.Errorf("writing the nodes: %w", err)
	}
	return nil
}

// nodes reads the files, or asks the API server when there are none.
func (f nodepoolsFlags) nodes(ctx context.Context, in io.Reader) ([]nodepool.NodeObject, error) {
	if len(f.files) == 0 {
		config, err := kubectlConfig(f.kubeconfig)
		if err != nil {
			return nil, err
		}
		return kube.ListNodeObjects(ctx, config)
	}
	if f.kubeconfig != "" {
		return nil, badInput{errors.New("want one of -f and --kubeconfig")}
	}
	var nodes []nodepool.NodeObject
	for _, name := range f.files {
		found, err := nodesOfFile(name, in)
		if err != nil {
			return nil, badInput{err}
		}
		nodes = append(nodes, found...)
	}
	return nodes, nil
}

func nodesOfFile(name string, in io.Reader) ([]nodepool.NodeObject, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("opening nodes: %w", err)
		}
		defer file.Close()
		in = file
	}
	nodes, err := kube.ReadNodeObjects(in)
	if err != nil {
		return nil, fmt.Errorf("reading nodes from %s: %w", name, err)
	}
	return nodes, nil
}

// kubectlConfig finds the API server as kubectl does: the file named, KUBECONFIG, the file at home, or the account of the pod.
func kubectlConfig(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; give --kubeconfig, or nodes with -f", err)
	}
	return config, nil
}

// configurable are the kinds that a name can be given.
func configurable() []string {
	kinds := []gpuinfo.Kind{gpuinfo.Whole, gpuinfo.MIG, gpuinfo.TimeSliced, gpuinfo.MPS, gpuinfo.VGPU}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return names
}

func configuredResources(pairs []string) ([]gpuinfo.Resource, error) {
	var resources []gpuinfo.Resource
	for _, pair := range pairs {
		name, kind, _ := strings.Cut(pair, "=")
		if !strings.Contains(name, "/") || !slices.Contains(configurable(), kind) {
			return nil, fmt.Errorf("--resource %q: want a name such as example.com/gpu, =, and one of %s", pair, strings.Join(configurable(), ", "))
		}
		resources = append(resources, gpuinfo.Resource{Name: name, Kind: gpuinfo.Kind(kind), Role: gpuinfo.Devices, Source: "configuration"})
	}
	return resources, nil
}

// writeNodepools writes nodes, pools and problems, each as a table where there are any.
func writeNodepools(out io.Writer, report nodepoolsReport) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tPOOL\tKIND\tPRODUCT\tCARDS\tUNITS\tMIB PER UNIT\tISOLATION")
	for _, n := range report.Nodes {
		fmt.Fprintln(table, strings.Join([]string{
			n.Name, orDash(n.Pool), string(n.Kind), orDash(n.Product), count(n.Cards), amounts(n.Units), amounts(n.MemoryMiB), string(n.Isolation),
		}, "\t"))
	}
	if len(report.Pools) > 0 {
		fmt.Fprintln(table, "\nPOOL\tPROVIDER\tNODES\tKIND\tPRODUCT\tCARDS\tUNITS\tISOLATION\tSPOT\tTAINTS")
	}
	for _, p := range report.Pools {
		fmt.Fprintln(table, strings.Join([]string{
			p.Name, p.Provider, strconv.Itoa(p.Nodes), string(p.Kind), orDash(p.Product), count(p.Cards), amounts(p.Units), string(p.Isolation),
			strconv.FormatBool(p.Spot), orNone(strings.Join(p.Taints, ",")),
		}, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return writeProblems(out, report.Nodes)
}

func writeProblems(out io.Writer, nodes []nodepool.NodeGPUs) error {
	var text strings.Builder
	for _, n := range nodes {
		for _, problem := range n.Problems {
			fmt.Fprintf(&text, "%s: %s\n", n.Name, problem)
		}
	}
	if text.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(out, "\nPROBLEMS\n"+text.String())
	return err
}

const unknownCell = "-"

func orDash(value *string) string {
	if value == nil {
		return unknownCell
	}
	return *value
}

func orNone(value string) string {
	if value == "" {
		return unknownCell
	}
	return value
}

func count(value *int64) string {
	if value == nil {
		return unknownCell
	}
	return strconv.FormatInt(*value, 10)
}

func amounts(values map[string]int64) string {
	parts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, values[name]))
	}
	return orNone(strings.Join(parts, ","))
}
