package provisioning

import (
	"context"
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Writer writes ProvisioningRequests.
type Writer interface {
	// Provision writes or deletes one ProvisioningRequest, or annotates a pod that uses one. After nodepool.ErrConflict
	// and nodepool.ErrGone, observe again.
	Provision(ctx context.Context, change nodepool.ProvisioningChange) error
}

// New returns the addon that asks for all nodes of a gang at once.
func New(writer Writer) addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		p := &provisions{loop: loop, writer: writer}
		return addon.Feature{Forget: p.requests.Forget, Launch: p.decide, BeforeDrains: p.provision}
	}}
}

// provisions are the ProvisioningRequests of one RayCluster.
type provisions struct {
	loop     addon.Loop
	writer   Writer
	requests Requests
	// decided is the latest decision of the cycle.
	decided Decision
	// managed: this process may have made ProvisioningRequests, so it takes them back when the RayCluster is no longer
	// managed.
	managed bool
	writes  addon.Writes
}

// decide lets launches wait for the nodes of a whole gang, where groups ask for it. Other modes write nothing, so
// nothing waits; what this process has asked for before, it takes back.
func (p *provisions) decide(v *observe.View, i *addon.Intent) {
	p.decided = Decision{}
	switch {
	case v.Mode == nodepool.Managed && v.Live():
		p.managed = true
		p.decided = p.requests.Decide(v.Now, &v.Cluster, i.Launch, len(v.Demand.Gangs) > 0)
		i.Launch = p.decided.Launch
	case p.managed && addon.HandedBack(&v.Cluster, v.Mode, v.Why):
		p.decided = HandBack(&v.Cluster)
	}
	for k := range i.Plan.Groups {
		if g := &i.Plan.Groups[k]; p.decided.Waits[g.Name] != "" {
			waits := planner.Reason{Code: planner.CodeProvisioning, Message: p.decided.Waits[g.Name]}
			g.Reasons = slices.Insert(slices.Clone(g.Reasons), 0, waits)
		}
	}
}

// Codes of findings about ProvisioningRequests.
const (
	// ProvisioningUnused: a group asks for a ProvisioningRequest, and is launched without one.
	ProvisioningUnused = "provisioning-request-unused"
	// ProvisioningUnwritten: a ProvisioningRequest or the annotations of its pods cannot be written.
	ProvisioningUnwritten = "provisioning-request-unwritten"
)

// provision writes what the cycle decided about ProvisioningRequests, within the bounds of guards.
func (p *provisions) provision(ctx context.Context, o *addon.Cycle) {
	if o.Withheld {
		return
	}
	defer p.reportProvisions(o)
	changes := p.decided.Changes
	p.writes.Round(ctx, p.loop, o, len(changes), func(at int) (addon.Action, error) {
		change := changes[at]
		err := p.writer.Provision(ctx, change)
		if change.Kind == nodepool.AskCapacity && ctx.Err() == nil && addon.Failed(err) {
			p.requests.Refused(o.View.Now, change.Request.Group, err)
		}
		action := addon.Action{Kind: addon.ActionProvision, Group: change.Request.Group,
			Message: change.Kind + " ProvisioningRequest " + change.Request.Name}
		if change.Pod.Pod != "" {
			action.Pods = []string{change.Pod.Pod}
		}
		return action, err
	})
}

// reportProvisions reports groups that ask for ProvisioningRequests and are launched without, and failed writes.
func (p *provisions) reportProvisions(o *addon.Cycle) {
	cluster := &o.View.Cluster
	o.Open = o.Open || p.writes.Err != nil || len(p.decided.Waits) > 0
	if p.writes.Err != nil {
		o.Findings = append(o.Findings, raydemand.Finding{
			Code: ProvisioningUnwritten, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
			Why: p.writes.Err.Error(),
			Fix: "grant Heliostat its rights on provisioningrequests, podtemplates and pods in namespace " +
				cluster.Key.Namespace + " (chart value provisioningRequests: true), or correct what the error says",
		})
	}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		why, fix := p.decided.Without[g.Name], "see docs/reference/provisioning-requests.md"
		if g.Provisions && cluster.Provisioning == nil {
			why, fix = "this Heliostat creates none", "serve with --provisioning-requests, or remove the annotation"
		}
		if why != "" {
			o.Findings = append(o.Findings, raydemand.Finding{
				Code: ProvisioningUnused, Severity: raydemand.Warning, Object: "RayCluster " + cluster.Key.String(),
				Field: "metadata.annotations." + nodepool.ProvisioningAnnotation, Seen: "group " + g.Name, Why: why,
				Fix: fix,
			})
		}
	}
}
