package printer

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WriteRequested writes the plain request of a cluster.
func WriteRequested(p *Page, r apiv1.Requested) {
	if len(r.Requested) == 0 {
		p.Line("", "There is no request without an id; `autoscaler requests` lists those with one.")
	} else {
		since := ""
		if r.Since != nil {
			since = ", since " + Moment(*r.Since)
		}
		p.Line("", "Requested"+since)
	}
	for _, request := range r.Requested {
		p.Line("  ", fmt.Sprintf("%d × %s", request.Count, planner.Describe(request)))
	}
	if r.NotScaled != "" && len(r.Requested) > 0 {
		p.Line("", "Nothing is launched for it: "+r.NotScaled)
	}
}

// WriteRequests writes a line for each request of a RayCluster, or of the fleet: of a namespace, or of all if it is
// empty.
func WriteRequests(p *Page, fleet bool, namespace string, list apiv1.RequestList) {
	if !fleet {
		namespace = "" // the argument names the RayCluster
	}
	if len(list.Items) == 0 {
		p.WriteString("No requests found" + onlyIn(namespace))
		return
	}
	t := newTable(p, "@ID", "@OWNER", "#PRIORITY*", "~BUNDLES", "STATE", "#SINCE", "#LEASE", "!WHY", "SERVED BY*")
	if fleet {
		t.Columns = append([]Column{columnOf("@RAYCLUSTER")}, t.Columns...)
	}
	for _, r := range list.Items {
		row := requestRow(r, p.Look)
		if fleet {
			row = append([]any{r.Namespace + "/" + r.Cluster}, row...)
		}
		t.Add(row...)
	}
	t.Write(p)
}

// requestStyles highlight states.
var requestStyles = map[raydemand.RequestState]Style{
	raydemand.RequestSatisfied:  Good,
	raydemand.RequestCapped:     Warn,
	raydemand.RequestImpossible: Bad,
	raydemand.RequestExpired:    Warn,
}

func requestRow(r apiv1.OwnedRequest, as Look) []any {
	id, owner := r.ID, ownerOf(as, r.Owner)
	if r.Plain {
		id, owner = "(plain)", unknownCell
	}
	lease, since := unknownCell, unknownCell
	if r.ExpiresAt != nil {
		lease = planner.Span(r.ExpiresAt.Sub(as.Now()).Seconds())
	}
	if r.Since != nil {
		since = planner.Span(as.Now().Sub(*r.Since).Seconds())
	}
	return []any{id, owner, r.Priority, bundlesOf(r.Bundles),
		Cell{string(r.State), requestStyles[r.State]}, since, lease, r.Reason.Message, servedBy(r.Groups)}
}

// ownerOf returns the owner, without the prefix of ServiceAccounts unless the table is wide.
func ownerOf(l Look, owner string) string {
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

// mostBundles is how many bundles of a request a table describes.
const mostBundles = 8

// bundlesOf describes bundles, and how many more there are.
func bundlesOf(requests []raydemand.Request) string {
	shown := requests[:min(len(requests), mostBundles)]
	texts := make([]string, len(shown))
	for i, r := range shown {
		texts[i] = fmt.Sprintf("%d × %s", r.Count, planner.Describe(r))
	}
	if more := len(requests) - len(shown); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
