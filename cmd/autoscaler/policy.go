package main

import (
	"context"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func newPolicyCommand() *cobra.Command {
	return clusterCommand(&cobra.Command{
		Use:   "policy RAYCLUSTER",
		Short: "Shows what a RayCluster keeps ready beyond its work",
		Long: "Shows the capacity policy that counts, and what becomes of it: which workers are free, which are\n" +
			"launched, and why. The annotation heliostat.dev/capacity-policy of the RayCluster comes before\n" +
			"CapacityPolicies.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler policy ml/llm",
	}, nil, printer.WritePolicy,
		func(ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey) (*printer.Policy, error) {
			now, err := api.CapacityPolicy(ctx, key)
			return &printer.Policy{Namespace: key.Namespace, Name: key.Name, CapacityPolicyState: now}, err
		})
}
