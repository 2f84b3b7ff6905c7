package nodeguard

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// writeEvery is how long the decision stands at most: each cycle writes a part of what is due.
const writeEvery = 5 * time.Second

// Writer writes guards.
type Writer interface {
	// Guard adds to one pod the annotations that keep node autoscalers from evicting it, or removes those that
	// Heliostat wrote. After nodepool.ErrConflict and nodepool.ErrGone, observe again.
	Guard(ctx context.Context, change nodepool.GuardChange) error
}

// Settings are those of guards.
type Settings struct {
	// Write guards. Without it, guards that are left are only reported.
	Write bool
	// JoinTime is how long a pod may take from its last step to join Ray before it counts as unable to.
	JoinTime time.Duration
}

// New returns the addon that guards the heads and the busy workers of managed RayClusters.
func New(writer Writer, settings Settings) addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		p := &protection{loop: loop, writer: writer, settings: settings}
		return addon.Feature{BeforeDrains: p.protect}
	}}
}

// protection is what the process remembers of the guards of one RayCluster.
type protection struct {
	loop     addon.Loop
	writer   Writer
	settings Settings

	keeper Keeper
	writes addon.Writes
	// managed: this process may have guarded pods of the RayCluster, so it takes its guards away when the RayCluster is
	// no longer managed. Another Heliostat that only watches the RayCluster never does.
	managed bool
}

// protect writes and removes the annotations that keep node autoscalers from evicting busy workers.
func (p *protection) protect(ctx context.Context, o *addon.Cycle) {
	defer p.reportGuards(ctx, o)
	if !p.mayGuard(o.View) {
		p.writes.Err = nil
		return
	}
	o.LookWithin(writeEvery)
	changes := p.keeper.Changes(o.View, Facts{
		Trusted:  p.loop.Doubt(o.View) == "",
		HandBack: o.View.Mode != nodepool.Managed,
		Drained:  p.loop.Drains().EndsIdle,
		JoinTime: p.settings.JoinTime,
	})
	p.writes.Round(ctx, p.loop, o, len(changes), func(at int) (addon.Action, error) {
		change := changes[at]
		err := p.writer.Guard(ctx, change)
		p.keeper.Tried(change, err)
		message := "guard removed"
		if change.Keep {
			message = "guard added"
		}
		p.loop.Log().DebugContext(ctx, message, "cluster", change.Cluster.String(), "pod", change.Pod, "err", err)
		return addon.Action{Kind: addon.ActionGuard, Pods: []string{change.Pod}, Message: message}, err
	})
}

// mayGuard reports whether pods of the RayCluster may be written to: while it is managed, and afterwards to take away
// what this process wrote, unless another autoscaler of Heliostat has taken over.
func (p *protection) mayGuard(v observe.View) bool {
	if !p.settings.Write {
		return false
	}
	if v.Mode == nodepool.Managed {
		p.managed = true
		return true
	}
	return p.managed && addon.HandedBack(&v.Cluster, v.Mode, v.Why)
}

// Codes of findings about guards.
const (
	// GuardUnwritten: the last write of a guard failed, so busy workers may be evicted, or idle ones hold their nodes.
	GuardUnwritten = "guard-unwritten"
	// GuardLeft: pods have a guard of Heliostat, and this process does not remove it.
	GuardLeft = "guard-left"
)

// reportGuards reports guards that cannot be written, and guards that nobody will remove.
func (p *protection) reportGuards(ctx context.Context, o *addon.Cycle) {
	cluster := &o.View.Cluster
	object := "RayCluster " + cluster.Key.String()
	if err := p.writes.Err; err != nil {
		why := "node autoscalers may evict its busy workers: " + err.Error()
		p.loop.EmitOnce(ctx, o.View, addon.Event{
			Warning: true, Reason: addon.ReasonGuardFailed, Message: "writing guards failed: " + why,
		})
		o.Findings = append(o.Findings, raydemand.Finding{
			Code: GuardUnwritten, Severity: raydemand.Error, Object: object, Why: why,
			Fix: "grant Heliostat the verb patch on pods in namespace " + cluster.Key.Namespace +
				" (chart value protectBusy: true), or correct what the error says",
		})
	}
	if p.mayGuard(o.View) || leavesToOthers(o.View.Why.Code) {
		return
	}
	if left := guardsLeft(cluster); left > 0 {
		o.Findings = append(o.Findings, raydemand.Finding{
			Code:     GuardLeft,
			Severity: raydemand.Warning,
			Object:   object,
			Seen:     fmt.Sprintf("%d pods with the annotation %s", left, nodepool.GuardAnnotation),
			Why: "node autoscalers never remove the nodes of these pods, and this Heliostat does not write to them " +
				"now",
			Fix: fmt.Sprintf(
				"serve with --protect-busy while the RayCluster is managed, or `kubectl annotate pods -n %s "+
					"-l ray.io/cluster=%s %s- %s- %s-`",
				cluster.Key.Namespace,
				cluster.Key.Name,
				nodepool.DoNotDisruptAnnotation,
				nodepool.SafeToEvictAnnotation,
				nodepool.GuardAnnotation,
			),
		})
	}
}

// leavesToOthers reports whether another Heliostat manages the RayCluster, and so its guards.
func leavesToOthers(code string) bool { return code == addon.SidecarManages || code == addon.Parked }

// guardsLeft counts the pods with a guard of Heliostat.
func guardsLeft(cluster *nodepool.Cluster) int {
	left := 0
	if cluster.Head.Guard.Ours {
		left++
	}
	for i := range cluster.Workers {
		if w := &cluster.Workers[i]; w.Guard.Ours && !w.Terminating && !w.Failed {
			left++
		}
	}
	return left
}
