package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// requestFlags are the flags of `request`.
type requestFlags struct {
	server  cli.ServerFlags
	output  string
	cpus    int64
	bundles []string
	file    string
	clear   bool
	owned   ownedFlags
}

func newRequestCommand() *cobra.Command {
	var flags requestFlags
	cmd := &cobra.Command{
		Use:   "request RAYCLUSTER [--id ID] [--cpus N] [--bundle JSON]... [-f FILE|-]",
		Short: "Sets or shows the minimum capacity that a RayCluster keeps",
		Long: "Sets the capacity that the RayCluster keeps whether it is in use or not, as\n" +
			"`ray.autoscaler.sdk.request_resources` does. It replaces the previous request. Without flags, it\n" +
			"shows the request.\n" +
			"\n" +
			"With --id, it creates a request in your own name, which adds up with the requests of others. It\n" +
			"is valid for --lease, or with --hold until you delete it.\n" +
			"\n" +
			"Requires the verb `request` on the RayCluster.\n\n" + cli.ServerHelp,
		Example: `  autoscaler request ml/llm --cpus 4 --bundle '{"GPU": 1}' --bundle '{"GPU": 1}'
  autoscaler request ml/llm --bundle '{"resources": {"CPU": 2}, "slice": {"memory": "10Gi", "isolation": ` +
			`"hardware"}, "count": 3}'
  autoscaler request ml/llm
  autoscaler request ml/llm --clear
  autoscaler request ml/llm --id train-7 --bundle '{"GPU": 1, "count": 4}' --lease 10m --priority 10
  autoscaler request ml/llm --id train-7 --renew
  autoscaler request ml/llm --id train-7 --delete`,
		Args: cli.Arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.server.AddTo(cmd)
	flags.owned.addTo(cmd)
	cmd.Flags().Int64Var(&flags.cpus, "cpus", 0, "number of bundles of one CPU")
	cmd.Flags().StringArrayVar(&flags.bundles, "bundle", nil,
		"a bundle, a JSON object of amounts, or of resources, slice and count (repeatable)")
	cmd.Flags().StringVarP(&flags.file, "filename", "f", "", "a file with the body of a REST call, or - for standard "+
		"input")
	cmd.Flags().BoolVar(&flags.clear, "clear", false, "remove the request")
	cli.Output(cmd.Flags(), &flags.output, cli.Outputs...)
	return cmd
}

func (f *requestFlags) run(cmd *cobra.Command, argument string) error {
	write := printer.WriterOf(f.output, printer.Look{}, printer.WriteRequested)
	if err := f.owned.misplaced(); err != nil {
		return cli.BadInput(err)
	}
	read := f.asked
	if f.owned.id != "" {
		read = f.spec
	}
	asked, err := read(cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	if err := f.check(asked); err != nil {
		return cli.BadInput(err)
	}
	key, api, err := f.server.Target(argument)
	if err != nil {
		return err
	}
	if f.owned.id != "" {
		return f.runOwned(cmd, api, key, asked)
	}
	requested, err := f.call(cmd, api, key, asked)
	if err != nil {
		return err
	}
	return write(cmd.OutOrStdout(), requested)
}

// check returns what the server would object to in the body, which is nil if there is none.
func (f *requestFlags) check(asked json.RawMessage) (err error) {
	switch {
	case asked == nil:
	case f.owned.id != "":
		_, err = api.DecodeSpec(asked)
	default:
		_, err = api.DecodeRequest(asked)
	}
	return err
}

func (f *requestFlags) call(
	cmd *cobra.Command,
	api *apiv1.Client,
	key nodepool.ClusterKey,
	asked json.RawMessage,
) (apiv1.Requested, error) {
	if asked == nil {
		return api.Requested(cmd.Context(), key)
	}
	return api.RequestResources(cmd.Context(), key, asked)
}

// asked returns the body of the call; nil shows the present request.
func (f *requestFlags) asked(stdin io.Reader) (json.RawMessage, error) {
	given := f.cpus != 0 || len(f.bundles) > 0
	switch {
	case f.clear && (given || f.file != "") || f.file != "" && given:
		return nil, errors.New("want one of --clear, -f, and --cpus with --bundle: each sets the whole request")
	case f.clear:
		return json.RawMessage("{}"), nil
	case f.file != "":
		return bodyOfFile(f.file, "a request", stdin)
	case !given:
		return nil, nil
	case f.cpus < 0:
		return nil, fmt.Errorf("--cpus %d: want a number of at least 0", f.cpus)
	}
	whole := struct {
		CPUs    int64             `json:"num_cpus,omitempty"`
		Bundles []json.RawMessage `json:"bundles,omitempty"`
	}{CPUs: f.cpus}
	for _, text := range f.bundles {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return nil, fmt.Errorf("--bundle %s: want a JSON object such as {\"GPU\": 1}", text)
		}
		if count, ok := object["count"]; ok && !json.Valid(object["resources"]) && object["slice"] == nil {
			return nil, fmt.Errorf("--bundle %s: count is not a resource: want {\"resources\": {...}, \"count\": %s}, "+
				"or --id, which accepts count beside amounts", text, count)
		}
		whole.Bundles = append(whole.Bundles, json.RawMessage(text))
	}
	return json.Marshal(whole)
}
