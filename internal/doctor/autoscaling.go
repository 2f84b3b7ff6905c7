package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Which autoscaler a RayCluster has: docs/reference/facts.md#sidecar-after-a-toggle.

func sidecarBesideUs(x *inventory, o *Object, report reporter) {
	if o.Mode() != nodepool.Managed {
		return
	}
	head := x.headPod(o)
	if head == nil {
		willBeBesideUs(x, o, report)
	} else if mayScale(o.Cluster.Head.Sidecar) {
		report(occurrence{Path: o.modeField().Path(),
			Seen: "managed, and pod " + head.Name + " has a container autoscaler",
			Fix: x.park(o).Then(kubectl(head, "delete")).
				Hint("the head restarts, which ends its jobs; or annotate " + modeAnnotation + "=shadow")})
	}
}

// mayScale reports whether the container autoscaler of a head writes replicas beside the fleet, or may do so.
func mayScale(sidecar nodepool.Autoscaler) bool {
	return sidecar == nodepool.RaySidecar || sidecar == nodepool.UnknownSidecar
}

// willBeBesideUs reports a RayCluster without a head pod, such as one in a file, whose head gets another autoscaler.
func willBeBesideUs(x *inventory, o *Object, report reporter) {
	image := o.raySpec().Get("autoscalerOptions", "image")
	if !o.Cluster.InTreeAutoscaling || !mayScale(o.sidecar()) {
		return
	}
	report(occurrence{Path: image.Path(), Seen: orNotSet(image.Text()) + ", and " + modeAnnotation + " is managed",
		Why: "the head pod gets Ray's own autoscaler, or a container that may be one. Both would write replicas, so " +
			"Heliostat stays in shadow mode and writes nothing",
		Fix: x.park(o).Hint("or annotate " + modeAnnotation + "=shadow")})
}

// sidecar returns which autoscaler the next head pod gets while in-tree autoscaling is on. KubeRay 1.7 replaces image,
// command and arguments one by one.
func (o *Object) sidecar() nodepool.Autoscaler {
	options := o.raySpec().Get("autoscalerOptions")
	container := corev1.Container{Image: options.Text("image"),
		Command: []string{"/bin/bash", "-c", "--"}, Args: []string{"ray kuberay-autoscaler"}}
	if words := options.TextList("command"); len(words) > 0 {
		container.Command = words
	}
	if words := options.TextList("args"); len(words) > 0 {
		container.Args = words
	}
	for _, variable := range options.Items("env") {
		container.Env = append(container.Env, corev1.EnvVar{Name: variable.Text("name")})
	}
	return decode.AutoscalerIn(container)
}

// park returns the patch with which in-tree autoscaling is on, and the head's container autoscaler is Heliostat's,
// which does nothing while the fleet manages the RayCluster.
func (x *inventory) park(o *Object) fix {
	_, service := x.program(heliostatImage)
	image := service.Text("image")
	on, options := o.raySpec().Path("enableInTreeAutoscaling"), o.raySpec().Path("autoscalerOptions")
	var changes []change
	if !o.Cluster.InTreeAutoscaling {
		changes = append(changes, change{on, true})
	}
	wanted := cmp.Or(image, "registry.example/heliostat:0.1.0")
	if o.raySpec().Has("autoscalerOptions") {
		changes = append(changes, change{options.Key("image"), wanted})
	} else {
		changes = append(changes, change{options, map[string]any{"version": "v2", "image": wanted}})
	}
	for _, key := range []string{"command", "args"} {
		if mayScale(o.sidecar()) && o.raySpec().Has("autoscalerOptions", key) {
			changes = append(changes, change{options.Key(key), nil}) // the image has its own
		}
	}
	change := patch(changes...)
	if image == "" {
		change = change.Hint("use the image of your Heliostat")
	}
	return change
}

func sidecarMissing(x *inventory, o *Object, report reporter) {
	v, head := o.raySpec().Get("enableInTreeAutoscaling"), x.headPod(o)
	isAutoscaler := func(c fieldpath.Value) bool { return c.Text("name") == "autoscaler" } // KubeRay adds it
	if o.Mode() == nodepool.Managed || !v.Flag() || head == nil ||
		slices.ContainsFunc(head.Root().Items("spec", "containers"), isAutoscaler) {
		return
	}
	report(occurrence{Path: v.Path(), Fix: restartHead(head),
		Seen: "true, and pod " + head.Name + " has no container autoscaler"})
}

func sidecarLeftOver(x *inventory, o *Object, report reporter) {
	head := x.headPod(o)
	if head != nil && !o.Cluster.InTreeAutoscaling && o.Cluster.Head.Sidecar == nodepool.RaySidecar {
		report(occurrence{Path: o.raySpec().Path("enableInTreeAutoscaling"),
			Seen: "off, and pod " + head.Name + " has a container autoscaler", Fix: restartHead(head)})
	}
}

func restartHead(head *Object) fix {
	return run(kubectl(head, "delete")).Hint("the head restarts, which ends its jobs")
}

func autoscalerVersionDiffers(_ *inventory, o *Object, report reporter) {
	at, variable := o.autoscalerV2Variable()
	version := o.raySpec().Text("autoscalerOptions", "version")
	if o.versionDiffers() {
		report(occurrence{Path: at,
			Seen: "RAY_enable_autoscaler_v2=" + variable + ", autoscalerOptions.version " + orNotSet(version),
			Fix:  remove(at)})
	}
}

func (o *Object) versionDiffers() bool {
	_, variable := o.autoscalerV2Variable()
	hasVersion := o.raySpec().Text("autoscalerOptions", "version") != ""
	return variable == "1" && !o.Cluster.InTreeAutoscaling || variable != "" && hasVersion
}

// versionRefused reports whether idle-timeout-refused or autoscaler-version-differs finds what the operator says.
func (o *Object) versionRefused(says string) bool {
	return o.Cluster != nil && (strings.Contains(says, "autoscaler v2 is not enabled") && !o.usesAutoscalerV2() ||
		strings.Contains(says, "RAY_enable_autoscaler_v2") && o.versionDiffers())
}

func surplusDeletedAtRandom(x *inventory, o *Object, report reporter) {
	v, mode := o.raySpec().Get("enableInTreeAutoscaling"), o.Mode()
	managed := mode == nodepool.Managed && !o.Cluster.Queue.Queued()
	if mode != nodepool.Shadow && mode != nodepool.Off && !managed || v.Flag() {
		return
	}
	manage := run(kubectl(o, "annotate", "--overwrite", modeAnnotation+"="+string(nodepool.Managed))).
		Hint("or make sure that whoever lowers replicas sets workersToDelete")
	if managed {
		manage = x.park(o).Hint("the head keeps running, and its next pod has the container, which does nothing; " +
			"upgradeStrategy Recreate and a RayService replace the RayCluster")
	}
	report(occurrence{Path: v.Path(), Seen: orNotSet(v.String()) + ", and " + modeAnnotation + " is " + string(mode),
		Fix: manage})
}

// nothingScales reports a group with GPUs that stays at 0, with room above. Whoever turns in-tree autoscaling off has
// another autoscaler, such as Heliostat by a flag of serve or an annotation of the namespace.
func nothingScales(x *inventory, o *Object, report reporter) {
	if o.raySpec().Has("enableInTreeAutoscaling") || o.modeField().Has() || o.Cluster.Queue.Queued() ||
		len(x.ByKind["Deployment"]) > 0 {
		return
	}
	for _, g := range o.groups() {
		if w := g.Workers; w == nil || w.Suspended || w.Replicas > 0 || w.Min > 0 || w.Max <= 0 ||
			!g.Has("replicas") || !g.requestsDevices() {
			continue
		}
		report(occurrence{Path: g.Path("replicas"), Seen: fmt.Sprintf("0, maxReplicas %d", g.Workers.Max),
			Fix: run(kubectl(o, "annotate", modeAnnotation+"="+string(nodepool.Managed))).
				Hint("for Ray's own autoscaler, set enableInTreeAutoscaling: true")})
		return // it is the same for the others
	}
}

func workerGroupsAbsent(_ *inventory, o *Object, report reporter) {
	if list := o.raySpec().Get("workerGroupSpecs"); o.raysAutoscaler() && !list.Has() {
		report(occurrence{Path: list.Path(), Fix: set(list.Path(), []any{})})
	}
}

func inPlaceResize(_ *inventory, o *Object, report reporter) {
	v := o.Root().Get("metadata", "annotations", "ray.io/ippr")
	if v.Has() && (o.Mode() == nodepool.Managed || o.Cluster.InTreeAutoscaling && !o.raysAutoscaler()) {
		report(shows(v, remove(v.Path()).Hint("or let Ray's own autoscaler scale the RayCluster")))
	}
}

func orNotSet(text string) string { return cmp.Or(text, "not set") }

func replicasTwoWriters(_ *inventory, o *Object, report reporter) {
	if !o.Cluster.InTreeAutoscaling && o.Mode() != nodepool.Managed {
		return // nothing scales it
	}
	for _, entry := range o.Root().Items("metadata", "managedFields") {
		manager, operation := entry.Text("manager"), entry.Text("operation")
		owns := slices.Contains(ownedFields(o, entry), "f:workerGroupSpecs")
		again := decode.Applies(manager) || operation == "Apply" && !strings.HasPrefix(manager, "kubectl")
		if !owns || scalers[manager] || !again { // people with kubectl write once
			continue
		}
		report(occurrence{Path: entry.Path(),
			Seen: fmt.Sprintf("manager %s, operation %s, at %s", manager, operation, orNotSet(entry.Text("time"))),
			Fix: run(kubectl(o, "get", "--show-managed-fields", "-o", "yaml")).
				Hint("let " + manager + " take replicas and scaleStrategy from the live object, as " +
					"docs/howto/gitops.md shows for Argo CD and Flux; a manifest without replicas sets them to 0")})
	}
}

// ownedFields returns the fields of the RayCluster's spec that an entry of managedFields owns.
func ownedFields(o *Object, entry fieldpath.Value) []string {
	fields := entry.Get("fieldsV1")
	for _, key := range o.Spec {
		fields = fields.Get("f:" + key)
	}
	return fields.Keys()
}

// scalers are the field managers that may write worker groups: Heliostat, Ray's autoscaler (a Python client) and the
// operator.
var scalers = map[string]bool{"heliostat": true, "python-requests": true, "kuberay-operator": true, "manager": true}

// networkCloses reports a network policy that keeps the fleet from the GCS, the only port of Ray that it calls. A
// sidecar is in a pod of the RayCluster, which may call it.
func networkCloses(x *inventory, o *Object, report reporter) {
	policy, mode := o.raySpec().Get("networkPolicy"), o.Mode()
	sidecar := mode == "" && strings.Contains(o.raySpec().Text("autoscalerOptions", "image"), heliostatImage)
	if o.Cluster.Head.ClosedBy == "" || mode == nodepool.Off || sidecar {
		return
	}
	namespace, labels := "heliostat", any(map[string]any{"app.kubernetes.io/name": "heliostat"})
	fleet, _ := x.program(heliostatImage)
	if fleet != nil {
		namespace, labels = fleet.Namespace, fleet.Root().Get("spec", "selector", "matchLabels").Raw()
	}
	rule := map[string]any{
		"from": []any{map[string]any{
			"namespaceSelector": matching(map[string]any{"kubernetes.io/metadata.name": namespace}),
			"podSelector":       matching(labels),
		}},
		"ports": []any{map[string]any{"port": o.Cluster.Head.GCSPort, "protocol": "TCP"}},
	}
	rules := policy.Get("head", "ingressRules")
	change := set(rules.Path().Index(len(rules.Items())), rule)
	if fleet == nil {
		change = change.Hint("use the namespace and the labels of your Heliostat")
	}
	report(occurrence{Path: rules.Path(), Why: o.Cluster.Head.ClosedBy +
		", so the fleet cannot read what Ray asks for, and scales nothing", Fix: change,
		Seen: orNotSet(rules.String())})
}

func matching(labels any) map[string]any { return map[string]any{"matchLabels": labels} }

func scaleGated(_ *inventory, g rayGroup, report reporter) {
	if v := g.Get("scaleStrategy", "scaleGate"); len(g.Workers.ScaleGates) > 0 {
		report(shows(v, run(kubectl(g.Of, "get", "-o", "yaml", "--show-managed-fields")).
			Hint("managedFields says whose gate it is; only that controller should remove it")))
	}
}

// cronTimeZone reports what KubeRay 1.7 refuses (ValidateRayCronJobSpec): 1.6.2 takes a zone in the schedule alone.
func cronTimeZone(_ *inventory, o *Object, report reporter) {
	schedule, zone := o.Root().Get("spec", "schedule"), o.Root().Get("spec", "timeZone")
	if _, err := time.LoadLocation(zone.Text()); zone.Has() && (zone.Text() == "" || err != nil) {
		report(shows(zone, edit("write an IANA name such as Europe/Berlin")))
	}
	if strings.Contains(schedule.Text(), "TZ") {
		found := shows(schedule, edit("with KubeRay 1.7, write the zone into spec.timeZone; 1.6.2 drops that"))
		found.Severity = raydemand.Warning
		report(found)
	}
}
