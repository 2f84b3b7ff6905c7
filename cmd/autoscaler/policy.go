package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

func newPolicyCommand() *cobra.Command {
	var server cli.ServerFlags
	output, set, remove := "table", "", false
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
		Args: cli.ExactlyOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		write := printer.WriterOf(output, printer.Look{}, printer.WritePolicy)
		body, err := policyBody(cmd.InOrStdin(), set)
		if err != nil {
			return cli.BadInput(err)
		}
		key, api, err := server.Target(args[0])
		if err != nil {
			return err
		}
		var now apiv1.CapacityPolicyState
		switch {
		case body != nil:
			now, err = api.SetCapacityPolicy(cmd.Context(), key, body)
		case remove:
			if err = api.ClearCapacityPolicy(cmd.Context(), key); err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: the annotation is removed\n", key)
				return err
			}
		default:
			now, err = api.CapacityPolicy(cmd.Context(), key)
		}
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), printer.Policy{Namespace: key.Namespace, Name: key.Name,
			CapacityPolicyState: now})
	}
	cmd.Flags().StringVar(&set, "set", "", "the policy as JSON, or - for standard input")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the annotation")
	cmd.MarkFlagsMutuallyExclusive("set", "remove")
	server.AddTo(cmd)
	cli.Output(cmd.Flags(), &output, cli.Outputs...)
	server.CompleteCluster(cmd)
	return cmd
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
