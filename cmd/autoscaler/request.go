package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// requestFlags are the flags of `request`. Those from id on are for a request in the caller's own name.
type requestFlags struct {
	server  cli.ServerFlags
	output  string
	bundles []string
	file    string
	delete  bool

	id           string
	priority     int32
	lease, wait  time.Duration
	allOrNothing bool
}

func newRequestCommand() *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use:   "request RAYCLUSTER [--id ID] [--bundle JSON]... [-f FILE|-]",
		Short: "Sets the minimum capacity that a RayCluster keeps, or lists what is requested",
		Long: "Sets the capacity that the RayCluster keeps whether it is in use or not, as\n" +
			"`ray.autoscaler.sdk.request_resources` does. It replaces the previous request. Without flags, it\n" +
			"lists this request and those with an id; `kubectl get resourcerequests -A` lists those of all\n" +
			"RayClusters.\n" +
			"\n" +
			"With --id, it creates a request in your own name, which adds up with the requests of others. It\n" +
			"is valid for --lease; the same command again renews it. A request that is valid until you delete\n" +
			"it comes from a file with holdUntilDeleted: true.\n" +
			"\n" +
			"Requires the verb `request` on the RayCluster.\n\n" + cli.ServerHelp,
		Example: `  autoscaler request ml/llm --bundle '{"CPU": 1, "count": 4}' --bundle '{"GPU": 1}'
  autoscaler request ml/llm --bundle '{"CPU": 2, "slice": {"memory": "10Gi", "isolation": "hardware"}, "count": 3}'
  autoscaler request ml/llm
  autoscaler request ml/llm --delete
  autoscaler request ml/llm --id train-7 --bundle '{"GPU": 1, "count": 4}' --lease 10m --priority 10
  autoscaler request ml/llm --id train-7 --delete`,
		Args: cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.server.AddTo(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.bundles, "bundle", nil, "a bundle, a JSON object of amounts, with slice and count beside "+
		"them, and with --id also labelSelectors (repeatable)")
	flags.StringVarP(&f.file, "filename", "f", "", "a file with the body of a REST call, or - for standard input")
	flags.BoolVar(&f.delete, "delete", false, "remove the request")
	flags.StringVar(&f.id, "id", "", "id of a request in your own name, which adds up with those of others; without "+
		"it, the command sets the plain request")
	flags.Int32Var(&f.priority, "priority", 0,
		"with --id: requests with a higher priority are served first if a limit does not allow all")
	flags.DurationVar(&f.lease, "lease", 0, "with --id: how long it is valid unless renewed, whole seconds")
	flags.BoolVar(&f.allOrNothing, "all-or-nothing", false,
		"with --id: launch workers only if all bundles can be served")
	flags.DurationVar(&f.wait, "wait", 0, "with --id: how long to wait for workers, renewing the lease meanwhile; "+
		"the command fails if the request is not satisfied by then")
	cli.Output(flags, &f.output, cli.Outputs...)
	for _, pair := range [][]string{{"filename", "bundle"}, {"filename", "priority"}, {"filename", "lease"},
		{"filename", "all-or-nothing"}, {"delete", "bundle"}, {"delete", "filename"}} {
		cmd.MarkFlagsMutuallyExclusive(pair...)
	}
	return cmd
}

func (f *requestFlags) run(cmd *cobra.Command, argument string) error {
	for _, name := range []string{"priority", "lease", "all-or-nothing", "wait"} {
		if f.id == "" && cmd.Flags().Changed(name) {
			return cli.BadInput(fmt.Errorf("--%s is for a request in your own name: give --id", name))
		}
	}
	body, err := f.body(cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	key, api, err := f.server.Target(argument)
	if err != nil {
		return err
	}
	if f.id != "" {
		return f.runOwned(cmd, api, key, body)
	}
	var requested apiv1.Requested
	switch {
	case f.delete:
		requested, err = api.RequestResources(cmd.Context(), key, struct{}{})
	case body != nil:
		requested, err = api.RequestResources(cmd.Context(), key, body)
	default:
		list, err := api.Requests(cmd.Context(), key)
		if err != nil {
			return err
		}
		return printer.Write(cmd.OutOrStdout(), f.output, list, printer.WriteRequests)
	}
	if err != nil {
		return err
	}
	return printer.Write(cmd.OutOrStdout(), f.output, requested, printer.WriteRequested)
}

// body returns the body of a call that sets the request; nil if the command shows or deletes it.
func (f *requestFlags) body(stdin io.Reader) (json.RawMessage, error) {
	switch {
	case f.file != "":
		return bodyOfFile(f.file, "a request", stdin)
	case len(f.bundles) == 0 && f.priority == 0 && f.lease == 0 && !f.allOrNothing:
		return nil, nil
	case len(f.bundles) == 0:
		return nil, errors.New("--priority, --lease and --all-or-nothing set a request: give --bundle with them")
	case f.lease%time.Second != 0 || f.lease < 0:
		return nil, fmt.Errorf("--lease %v: want whole seconds above 0", f.lease)
	}
	var bundles []map[string]any
	for _, text := range f.bundles {
		bundle, err := bundleOf(text)
		if err != nil {
			return nil, err
		}
		bundles = append(bundles, bundle)
	}
	body := map[string]any{"bundles": bundles}
	if f.id != "" {
		body["priority"], body["allOrNothing"] = f.priority, f.allOrNothing
		body["leaseSeconds"] = int64(f.lease / time.Second)
	}
	return json.Marshal(body)
}

// bundleOf returns a bundle as the server reads it: amounts that are not in resources belong there.
func bundleOf(text string) (map[string]any, error) {
	if fault := fieldpath.CheckObject([]byte(text), `a JSON object such as {"GPU": 1}`); fault != nil {
		if where := fault.Path.String(); where != "" {
			return nil, fmt.Errorf("--bundle %s: %s: %s, want %s", text, where, fault.Value, fault.Want)
		}
		return nil, fmt.Errorf("--bundle %s: want %s", text, fault.Want)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return nil, fmt.Errorf("--bundle %s: %w", text, err)
	}
	bundle, amounts := map[string]any{}, map[string]json.RawMessage{}
	for name, value := range given {
		object := strings.HasPrefix(strings.TrimSpace(string(value)), "{")
		if (name == "resources" || name == "slice") && object || name == "labelSelectors" || name == "count" {
			bundle[name] = value
		} else {
			amounts[name] = value
		}
	}
	if bundle["resources"] != nil && len(amounts) > 0 {
		return nil, fmt.Errorf("--bundle %s: want amounts in resources, or beside slice and count, not both", text)
	}
	if bundle["resources"] == nil {
		bundle["resources"] = amounts
	}
	return bundle, nil
}

// runOwned creates, replaces, shows or deletes a request in the caller's own name.
func (f *requestFlags) runOwned(
	cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey, body json.RawMessage,
) error {
	if f.delete {
		if err := api.DeleteRequest(cmd.Context(), key, f.id); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "request %s of %s deleted\n", f.id, key)
		return err
	}
	request, err := f.await(cmd.Context(), api, key, body)
	if err != nil {
		return err
	}
	err = printer.Write(cmd.OutOrStdout(), f.output, request, func(p *printer.Page, r apiv1.OwnedRequest) {
		printer.WriteRequests(p, apiv1.RequestList{Items: []apiv1.OwnedRequest{r}})
	})
	if err == nil && f.wait > 0 && request.State != raydemand.RequestSatisfied {
		noteStaleness(cmd, api, key)
		err = fmt.Errorf("request %s of %s is not satisfied: %s: %s", request.ID, key, request.State,
			request.Reason.Message)
	}
	return err
}

// pollEvery is the interval in which --wait reads the request.
const pollEvery = time.Second

// await sets or reads the request, and with --wait reads it until it no longer waits. If the command sets the request,
// it renews the lease after each third of it, so that two renewals may fail before the lease ends; a request that it
// only shows is its owner's to renew. While it waits, the server may restart.
func (f *requestFlags) await(
	ctx context.Context, api *apiv1.Client, key nodepool.ClusterKey, body json.RawMessage,
) (request apiv1.OwnedRequest, err error) {
	end, renew := time.Now().Add(f.wait), time.Now()
	for {
		var next apiv1.OwnedRequest
		if now := time.Now(); body != nil && !now.Before(renew) {
			next, err = api.KeepRequest(ctx, key, f.id, body)
			switch {
			case err != nil: // it is due until a call succeeds
			case next.LeaseSeconds == 0:
				renew = end
			default:
				renew = now.Add(time.Duration(next.LeaseSeconds) * time.Second / 3)
			}
		} else {
			next, err = api.Request(ctx, key, f.id)
		}
		var problem *apiv1.Problem
		restarts := request.ID != "" && err != nil &&
			(!errors.As(err, &problem) || problem.Status == http.StatusServiceUnavailable)
		if !restarts {
			request = next
		}
		waits := restarts || err == nil && request.State == raydemand.RequestWaiting
		if !waits || !time.Now().Add(pollEvery).Before(end) {
			return request, err
		}
		select {
		case <-ctx.Done():
			return request, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}
