package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

func newPolicyCommand() *cobra.Command {
	set, remove := "", false
	var body json.RawMessage
	cmd := &cobra.Command{
		Use:   "policy RAYCLUSTER",
		Short: "Shows, sets or removes what a RayCluster keeps ready beyond its work",
		Long: "Shows the capacity policy that counts, and what becomes of it: which workers are free, which are\n" +
			"launched, and why. With --set it replaces the annotation heliostat.dev/capacity-policy of the\n" +
			"RayCluster, with --remove it removes it, so that a CapacityPolicy counts. Both require permission\n" +
			"to patch the RayCluster.\n\n" +
			cli.ServerHelp,
		Example: "  autoscaler policy ml/llm\n" +
			"  autoscaler policy ml/llm --set '{\"keepWarm\": [{\"group\": \"gpu\", \"count\": 2}]}'\n" +
			"  autoscaler policy ml/llm --remove",
	}
	cmd.Flags().StringVar(&set, "set", "", "the policy as JSON, or - for standard input")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the annotation")
	cmd.MarkFlagsMutuallyExclusive("set", "remove")
	check := func() (err error) {
		body, err = policyBody(cmd.InOrStdin(), set)
		return err
	}
	return clusterCommand(cmd, check, printer.WritePolicy,
		func(ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey) (*printer.Policy, error) {
			var now apiv1.CapacityPolicyState
			var err error
			switch {
			case body != nil:
				now, err = api.SetCapacityPolicy(ctx, key, body)
			case remove:
				if err = api.ClearCapacityPolicy(ctx, key); err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: the annotation is removed\n", key)
				}
				return nil, err
			default:
				now, err = api.CapacityPolicy(ctx, key)
			}
			return &printer.Policy{Namespace: key.Namespace, Name: key.Name, CapacityPolicyState: now}, err
		})
}

// policyBody returns the policy of --set, which is checked before anything is called; nil without one.
func policyBody(in io.Reader, set string) (json.RawMessage, error) {
	text := []byte(set)
	switch set {
	case "":
		return nil, nil
	case "-":
		var err error
		if text, err = io.ReadAll(io.LimitReader(in, policytext.MaxBytes+1)); err != nil {
			return nil, fmt.Errorf("reading the policy: %w", err)
		}
	}
	if _, fault := policytext.Read(text); fault != nil {
		return nil, errors.New("--set: " + fault.Error())
	}
	return text, nil
}
