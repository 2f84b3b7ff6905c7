package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// runLive asks the server for the plan of a RayCluster as it is, or as it would be with what --what-if says.
func (f planFlags) runLive(cmd *cobra.Command, argument string) error {
	switch {
	case f.snapshot != "" || f.policy != "":
		return cli.BadInput(errors.New("--snapshot and --policy have no place beside a RayCluster; --what-if can say a policy"))
	case f.told.Given():
		return cli.BadInput(cli.ErrServerReadsNodes)
	}
	write, err := cli.WriterOf(f.Output, writeSupposed)
	if err != nil {
		return err
	}
	supposition, err := f.supposition(cmd.InOrStdin())
	if err != nil {
		return cli.BadInput(err)
	}
	key, api, err := f.Server.Target(argument)
	if err != nil {
		return err
	}
	return f.Show(cmd, table.Look{}, api, key, func(ctx context.Context, out io.Writer) error {
		answer, err := api.Plan(ctx, key, supposition)
		if err != nil {
			return err
		}
		return write(out, answer)
	})
}

// supposition is the body of the call; nothing supposed is the present plan.
func (f planFlags) supposition(stdin io.Reader) (json.RawMessage, error) {
	if f.whatIf == "" {
		return json.RawMessage("{}"), nil
	}
	return bodyOfFile(f.whatIf, "what is supposed", stdin)
}

// mostBody bounds a file with the body of a call, in bytes: YAML with room for comments around as much JSON as a server takes.
const mostBody = 4 << 20

// bodyOfFile reads the body of a call, JSON or YAML; what says what it is.
func bodyOfFile(name, what string, stdin io.Reader) (body json.RawMessage, err error) {
	err = cli.ReadFile(name, what, stdin, mostBody, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		body, err = yaml.YAMLToJSONStrict(text)
		if err == nil && string(body) == "null" {
			err = errors.New("it holds nothing: want the body of a call, as JSON or YAML")
		}
		return err
	})
	return body, err
}

// writeSupposed writes a plan for a person, and what it does otherwise than the present one.
func writeSupposed(out io.Writer, answer apiv1.SupposingAnswer) error {
	if err := writePlanText(out, planned{plan: answer.Plan}); err != nil {
		return err
	}
	var p table.Page
	writeDifference(&p, answer.Difference)
	_, err := io.WriteString(out, p.String())
	return err
}

func writeDifference(p *table.Page, d planner.Difference) {
	p.Line("", "")
	p.Line("", "Otherwise than the present plan")
	for _, g := range d.Groups {
		p.Line("  ", fmt.Sprintf("group %s shall have %d pods, and not %d", g.Name, g.To, g.From))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Launch)) {
		p.Line("  ", fmt.Sprintf("launch %+d × %s", d.Launch[name], name))
	}
	for _, t := range d.Stopped {
		p.Line("  ", fmt.Sprintf("%s of %s goes (%s)", t.Pod, t.Group, t.Reason))
	}
	for _, t := range d.Spared {
		p.Line("  ", fmt.Sprintf("%s of %s stays", t.Pod, t.Group))
	}
	for _, demand := range d.Demand {
		p.Line("  ", fmt.Sprintf("%s: %s; now: %s", demand.About, orNone(demand.To), orNone(demand.From)))
	}
	if len(d.Groups)+len(d.Launch)+len(d.Stopped)+len(d.Spared)+len(d.Demand) == 0 {
		p.Line("  ", "nothing")
	}
	if d.Price != nil && *d.Price != 0 {
		p.Line("  ", fmt.Sprintf("price of what is launched: %+g an hour", *d.Price))
	}
}
