package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/cli/watch"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func newRequestsCommand() *cobra.Command {
	var flags watch.Flags
	cmd := &cobra.Command{
		Use:   "requests [RAYCLUSTER]",
		Short: "Lists who requests how much capacity, and what became of it",
		Long: "Lists the requests with owners of all RayClusters that you may see, or those of one with the plain request first. With -w it\n" +
			"lists them again whenever something changes.\n\n" + connect.Help,
		Example: "  autoscaler requests\n  autoscaler requests ml/llm\n  autoscaler requests ml/llm -o json",
		Args:    cli.AtMostOneCluster,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		as := flags.Look(cmd.OutOrStdout(), true)
		write, err := cli.WriterOf(flags.Output, writeRequests(len(args) == 0, flags.Server.Namespace, as, time.Now))
		if err != nil {
			return err
		}
		var key nodepool.ClusterKey
		if len(args) == 1 {
			if key, err = flags.Server.Cluster(args[0]); err != nil {
				return err
			}
		}
		api, err := flags.Server.Client()
		if err != nil {
			return err
		}
		return flags.Show(cmd, as, api, key, func(ctx context.Context, out io.Writer) error {
			requests, err := api.Requests(ctx, key)
			if err != nil {
				return err
			}
			return write(out, apiv1.RequestList{Items: ofNamespace(requests, flags.Server.Namespace)})
		})
	}
	flags.AddTo(cmd)
	return cmd
}

// ofNamespace keeps the requests of a namespace, or all where it is empty.
func ofNamespace(requests []apiv1.OwnedRequest, namespace string) []apiv1.OwnedRequest {
	kept := []apiv1.OwnedRequest{}
	for _, r := range requests {
		if namespace == "" || r.Namespace == namespace {
			kept = append(kept, r)
		}
	}
	return kept
}

// writeRequests writes a line for each request of a RayCluster, or of the fleet: of a namespace, or of all where it is empty.
func writeRequests(fleet bool, namespace string, as table.Look, now func() time.Time) func(io.Writer, apiv1.RequestList) error {
	if !fleet {
		namespace = "" // the RayCluster was named
	}
	return func(out io.Writer, list apiv1.RequestList) error {
		if len(list.Items) == 0 && !as.Begun() {
			_, err := io.WriteString(out, "Nothing is requested"+onlyIn(namespace))
			return err
		}
		t := table.Table{Look: as, Columns: []table.Column{table.Name("ID"), table.Name("OWNER"), table.Number("PRIORITY").OnlyWide(), table.Prose("BUNDLES"),
			table.Text("STATE"), table.Number("SINCE"), table.Number("LEASE"), table.Note("WHY"), table.Wide("SERVED BY")}}
		if fleet {
			t.Columns = append([]table.Column{table.Name("RAYCLUSTER")}, t.Columns...)
		}
		for _, r := range list.Items {
			row := requestRow(r, as, now())
			if fleet {
				row = append(table.Cells(r.Namespace+"/"+r.Cluster), row...)
			}
			t.Add(row...)
		}
		var p table.Page
		t.Write(&p)
		_, err := io.WriteString(out, p.String())
		return err
	}
}

// requestStyles say which states stand out.
var requestStyles = map[raydemand.RequestState]table.Style{
	raydemand.RequestSatisfied: table.Good, raydemand.RequestCapped: table.Warn, raydemand.RequestImpossible: table.Bad, raydemand.RequestExpired: table.Warn,
}

func requestRow(r apiv1.OwnedRequest, as table.Look, now time.Time) []table.Cell {
	id, owner := r.ID, ownerOf(as, r.Owner)
	if r.Plain {
		id, owner = "(plain)", unknownCell
	}
	lease, since := unknownCell, unknownCell
	if r.ExpiresAt != nil {
		lease = planner.Span(r.ExpiresAt.Sub(now).Seconds())
	}
	if r.Since != nil {
		since = planner.Span(now.Sub(*r.Since).Seconds())
	}
	why := r.Reason.Message
	if r.ExpectedAt != nil && r.State == raydemand.RequestWaiting {
		why += "; expected in " + planner.Span(r.ExpectedAt.Sub(now).Seconds())
	}
	return []table.Cell{{Text: id}, {Text: owner}, {Text: strconv.Itoa(int(r.Priority))}, {Text: bundlesOf(r.Bundles, r.MoreBundles)},
		{Text: string(r.State), Style: requestStyles[r.State]}, {Text: since}, {Text: lease}, {Text: why}, {Text: servedBy(r.Groups)}}
}

// ownerOf is who asks. What all ServiceAccounts' names begin with is left out but for a wide table.
func ownerOf(l table.Look, owner string) string {
	if l.Wide {
		return owner
	}
	return strings.TrimPrefix(owner, "system:serviceaccount:")
}

// servedBy names the groups whose pods serve a request.
func servedBy(groups []apiv1.ServingGroup) string {
	texts := make([]string, len(groups))
	for i, g := range groups {
		texts[i] = fmt.Sprintf("%d × %s", g.Pods, g.Name)
	}
	return orNone(strings.Join(texts, ", "))
}

// bundlesOf names bundles, and how many more there are.
func bundlesOf(requests []raydemand.Request, more int) string {
	texts := make([]string, len(requests))
	for i, r := range requests {
		texts[i] = fmt.Sprintf("%d × %s", r.Count, planner.Describe(r))
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
