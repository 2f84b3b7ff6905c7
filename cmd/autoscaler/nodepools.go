package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
	pools      string
}

func newNodepoolsCommand() *cobra.Command {
	var flags nodepoolsFlags
	cmd := &cobra.Command{
		Use:   "nodepools [-f FILE...]",
		Short: "Shows what is understood of the GPUs of each node and pool, and what is wrong with them",
		Long: "Reads nodes from the API server, or from manifests as `kubectl get nodes -o yaml` prints them, and says of each how its GPUs are\n" +
			"handed out: kind, cards, units, memory behind a unit, isolation and problems. Pods, ResourceSlices and ResourceClaims beside them\n" +
			"tell what is free on each card; the Cluster Autoscaler's status and Karpenter's NodePools how far pools may grow. What is not\n" +
			"proven is left open. In the table - is what is not known, or not there; FREE PER CARD has an entry for each card, in MiB, in\n" +
			"units (1u), or ? where nothing is known of that card.\n\n" +
			"  kubectl get nodes,pods -A -o json | autoscaler nodepools -f -",
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
	cmd.Flags().StringVar(&flags.poolLabel, "pool-label", "", poolLabelUsage)
	cmd.Flags().StringArrayVar(&flags.resources, "resource", nil, resourceUsage())
	cmd.Flags().StringVar(&flags.pools, "pools", "", "a file that describes pools: sizes, prices, and what a node of a pool without nodes would be")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "table or json")
	return cmd
}

// nodepoolsReport is what `nodepools -o json` writes; null stands for what cannot be known.
type nodepoolsReport struct {
	Nodes []nodepool.NodeGPUs `json:"nodes"`
	Pools []nodepool.GPUPool  `json:"pools"`
	// Notes say what could not be read and is therefore left open.
	Notes []string `json:"notes"`
}

func (f nodepoolsFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	write, ok := map[string]func(io.Writer, nodepoolsReport) error{"table": writeNodepools, "text": writeNodepools, "json": writeJSON[nodepoolsReport]}[f.output]
	if !ok {
		return badInput{fmt.Errorf("--output %q: want table or json", f.output)}
	}
	reader := nodepool.GPUReader{PoolLabel: f.poolLabel}
	var err error
	if reader.Names.Configured, err = configuredResources(f.resources); err != nil {
		return badInput{err}
	}
	config, err := poolsOfFile(f.pools)
	if err != nil {
		return badInput{err}
	}
	set, err := f.nodes(ctx, in)
	if err != nil {
		return err
	}
	nodes := set.Nodes()
	if len(nodes) == 0 && len(f.files) > 0 && f.pools == "" {
		return badInput{fmt.Errorf("no node in %s: want what `kubectl get nodes -o yaml` prints", strings.Join(f.files, ", "))}
	}
	slices.SortStableFunc(nodes, func(a, b nodepool.NodeObject) int { return strings.Compare(a.Name, b.Name) })
	report := nodepoolsReport{
		Nodes: make([]nodepool.NodeGPUs, 0, len(nodes)), Pools: reader.PoolsWith(nodes, config, set.Ceilings), Notes: append([]string{}, set.Notes...),
	}
	for _, node := range nodes {
		report.Nodes = append(report.Nodes, reader.Read(node))
	}
	if err := write(out, report); err != nil {
		return fmt.Errorf("writing the nodes: %w", err)
	}
	return nil
}

// nodes reads the files, or asks the API server when there are none.
func (f nodepoolsFlags) nodes(ctx context.Context, in io.Reader) (*kube.NodeSet, error) {
	if len(f.files) == 0 {
		config, err := kubectlConfig(f.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("%w, or nodes with -f", err)
		}
		return kube.ListNodes(ctx, config)
	}
	if f.kubeconfig != "" {
		return nil, badInput{errors.New("want one of -f and --kubeconfig")}
	}
	set := &kube.NodeSet{}
	for _, name := range f.files {
		if err := readFile(name, "nodes", in, set.Read); err != nil {
			return nil, badInput{err}
		}
	}
	return set, nil
}

// nodesOfFile reads the nodes of one file.
func nodesOfFile(name string, in io.Reader) ([]nodepool.NodeObject, error) {
	var set kube.NodeSet
	err := readFile(name, "nodes", in, set.Read)
	return set.Nodes(), err
}

// poolsOfFile reads the description of pools; no name is no description.
func poolsOfFile(name string) (config nodepool.PoolsConfig, err error) {
	if name == "" {
		return config, nil
	}
	err = readFile(name, "pools", nil, func(in io.Reader) (err error) {
		config, err = kube.ReadPools(in)
		return err
	})
	return config, err
}

// readFile opens what is named, or takes standard input for -, and reads it; what is what it has, for errors.
func readFile(name, what string, stdin io.Reader, read func(io.Reader) error) error {
	in := stdin
	if name != "-" || stdin == nil {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("opening %s: %w", what, err)
		}
		defer file.Close()
		in = file
	}
	if err := read(in); err != nil {
		return fmt.Errorf("reading %s from %s: %w", what, name, err)
	}
	return nil
}

// kubectlConfig finds the API server as kubectl does: the file named, KUBECONFIG, the file at home, or the account of the pod.
func kubectlConfig(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; give --kubeconfig", err)
	}
	return config, nil
}

const poolLabelUsage = "a node label that names the pool and goes before those of the clouds"

func resourceUsage() string {
	return "NAME=KIND: what a resource name means that is not built in, or means something else here; KIND is " + strings.Join(configurable(), ", ") +
		"; mig can be followed by the profile, mig:1g.5gb"
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
		kind, profile, withProfile := strings.Cut(kind, ":")
		if !strings.Contains(name, "/") || !slices.Contains(configurable(), kind) || withProfile && kind != string(gpuinfo.MIG) {
			return nil, fmt.Errorf("--resource %q: want a name such as example.com/gpu, =, and one of %s", pair, strings.Join(configurable(), ", "))
		}
		resource := gpuinfo.Resource{Name: name, Kind: gpuinfo.Kind(kind), Role: gpuinfo.Devices, Source: "configuration"}
		if withProfile {
			parsed, err := gpuinfo.ParseProfile(profile)
			if err != nil {
				return nil, fmt.Errorf("--resource %q: %w", pair, err)
			}
			resource.Profile = parsed.String()
		}
		resources = append(resources, resource)
	}
	return resources, nil
}
