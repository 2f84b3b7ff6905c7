package doctor

import (
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// networkCloses reports a network policy that keeps the fleet from the GCS, the only port of Ray that it calls. A
// sidecar is in a pod of the RayCluster, which may call it.
func networkCloses(x *inventory, o *Object, report reporter) {
	policy, mode := o.raySpec().Get("networkPolicy"), o.Mode()
	sidecar := mode == "" && strings.Contains(o.raySpec().Text("autoscalerOptions", "image"), heliostatImage)
	if o.Cluster.Head.ClosedBy == "" || mode == nodepool.Off || sidecar {
		return
	}
	namespace, labels := "heliostat", any(map[string]any{"app.kubernetes.io/name": "heliostat"})
	fleet, found := x.onlyService()
	if found {
		namespace, labels = fleet.Namespace, fleet.Root().Get("spec", "selector", "matchLabels").Raw()
	}
	rule := map[string]any{
		"from": []any{map[string]any{
			"namespaceSelector": matching(map[string]any{"kubernetes.io/metadata.name": namespace}),
			"podSelector":       matching(labels),
		}},
		"ports": []any{map[string]any{"port": o.Cluster.Head.GCSPort, "protocol": "TCP"}},
	}
	change := patch(o, appendTo(o, policy.Get("head", "ingressRules"), rule))
	if !found {
		change = change.Hint("use the namespace and the labels of your Heliostat")
	}
	report(occurrence{Object: o, Path: policy.Path("head", "ingressRules"), Why: o.Cluster.Head.ClosedBy +
		", so the fleet cannot read what Ray asks for, and scales nothing", Fix: change,
		Seen: orNotSet(policy.Get("head", "ingressRules").String())})
}

// matching returns the label selector of these labels.
func matching(labels any) map[string]any { return map[string]any{"matchLabels": labels} }

// endIdle replaces a field of Ray's idle termination with the capacity policy that says the same, unless there is a
// policy or an owner, whose RayCluster no policy ends.
func endIdle(o *Object, f raydemand.Finding) fix {
	at, _ := fieldpath.Parse(fieldIn(o, f.Field))
	annotation := o.Root().Path("metadata", "annotations", capacity.Annotation)
	if o.Kind != "RayCluster" || o.Cluster.OwnedBy != "" || o.Cluster.Policy != nil {
		return byHand(o, f)
	}
	timeout := o.raySpec().Get("idleTerminationOptions", "timeoutSeconds")
	if !timeout.Has() {
		timeout = o.raySpec().Get("autoscalerOptions", "noDriverTimeoutSeconds")
	}
	seconds, _ := timeout.Whole()
	if time.Duration(seconds)*time.Second < capacity.LeastIdle {
		return byHand(o, f) // nobody has written a time that a policy may have
	}
	after := capacity.Duration(time.Duration(seconds) * time.Second)
	idle := capacity.Idle{SuspendAfter: after}
	if o.raySpec().Text("idleTerminationOptions", "policy") == "Delete" {
		idle = capacity.Idle{DeleteAfter: after}
	}
	return patch(o, remove(at), set(o, annotation, compactJSON(capacity.Policy{Idle: &idle}))).
		Hint("Heliostat ends it only without drivers, actors and requests")
}

func scaleGated(_ *inventory, g rayGroup, report reporter) {
	if v := g.Get("scaleStrategy", "scaleGate"); len(g.Workers.ScaleGates) > 0 {
		report(shows(g.Of, v, run(kubectl(g.Of, "get", "-o", "yaml", "--show-managed-fields")).
			Hint("managedFields says whose gate it is; only that controller should remove it")))
	}
}

// cronTimeZone reports what KubeRay 1.7 refuses (ValidateRayCronJobSpec): 1.6.2 takes a zone in the schedule alone.
func cronTimeZone(_ *inventory, o *Object, report reporter) {
	schedule, zone := o.Root().Get("spec", "schedule"), o.Root().Get("spec", "timeZone")
	if _, err := time.LoadLocation(zone.Text()); zone.Has() && (zone.Text() == "" || err != nil) {
		report(shows(o, zone, edit(o, "write an IANA name such as Europe/Berlin")))
	}
	if strings.Contains(schedule.Text(), "TZ") {
		found := shows(o, schedule, edit(o, "with KubeRay 1.7, write the zone into spec.timeZone; 1.6.2 drops that"))
		found.Severity = raydemand.Warning
		report(found)
	}
}
