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
		p.Line("", "There is no request without an id.")
	} else {
		since := ""
		if r.Since != nil {
			since = ", since " + Moment(*r.Since)
		}
		p.Line("", "Requested"+since)
	}
	for _, request := range r.Requested {
		p.Line("  ", counted(request))
	}
	if r.NotScaled != "" && len(r.Requested) > 0 {
		p.Line("", "Nothing is launched for it: "+r.NotScaled)
	}
}

// WriteRequests writes a line for each request.
func WriteRequests(p *Page, list apiv1.RequestList) {
	if len(list.Items) == 0 {
		p.Line("", "No requests found.")
		return
	}
	t := newTable("RAYCLUSTER", "ID", "OWNER", "PRIORITY*", "BUNDLES", "STATE", "SINCE", "LEASE", "SERVED BY*", "WHY")
	for _, r := range list.Items {
		id, lease, since := r.ID, "", ""
		if r.Plain {
			id = "(plain)"
		}
		if r.ExpiresAt != nil {
			lease = planner.Span(r.ExpiresAt.Sub(p.Now).Seconds())
		}
		if r.Since != nil {
			since = planner.Span(p.Now.Sub(*r.Since).Seconds())
		}
		t.Add(r.Namespace+"/"+r.Cluster, id, r.Owner, r.Priority, bundlesOf(r.Bundles), r.State, since, lease,
			servedBy(r.Groups), r.Reason.Message)
	}
	t.Write(p)
}

// servedBy names the groups whose pods serve a request.
func servedBy(groups []apiv1.ServingGroup) string {
	texts := make([]string, len(groups))
	for i, g := range groups {
		texts[i] = fmt.Sprintf("%d × %s", g.Pods, g.Name)
	}
	return strings.Join(texts, ", ")
}

// mostBundles is how many bundles of a request a table describes.
const mostBundles = 8

// bundlesOf describes bundles, and how many more there are.
func bundlesOf(requests []raydemand.Request) string {
	shown := requests[:min(len(requests), mostBundles)]
	texts := make([]string, len(shown))
	for i, r := range shown {
		texts[i] = counted(r)
	}
	if more := len(requests) - len(shown); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}
