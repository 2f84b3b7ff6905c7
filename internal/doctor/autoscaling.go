package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Which autoscaler a RayCluster has: docs/reference/facts.md#sidecar-after-a-toggle.

func sidecarBesideUs(x *inventory, o *Object, report reporter) {
	head := x.headPod(o)
	sidecar := o.Cluster.Head.Sidecar
	alive := sidecar == nodepool.RaySidecar || sidecar == nodepool.UnknownSidecar
	if !alive || head == nil || o.Mode() != nodepool.Managed {
		return
	}
	report(occurrence{
		Object: o, Path: o.modeField().Path(), Seen: "managed, and pod " + head.Name + " has a container autoscaler",
		Fix: x.park(o).Then(kubectl(head, "delete")).
			Hint("the head restarts, which ends its jobs; or annotate " + modeAnnotation + "=shadow"),
	})
}

// park returns the patch with which in-tree autoscaling is on, and the head's container autoscaler is Heliostat's,
// which does nothing while the fleet manages the RayCluster.
func (x *inventory) park(o *Object) fix {
	image := ""
	if service, found := x.onlyService(); found {
		image = service.container.Text("image")
	}
	on, options := o.raySpec().Path("enableInTreeAutoscaling"), o.raySpec().Path("autoscalerOptions")
	changes := []operation{set(o, on, true)}
	wanted := cmp.Or(image, "registry.example/heliostat:0.1.0")
	if o.raySpec().Has("autoscalerOptions") {
		changes = append(changes, set(o, options.Key("image"), wanted))
	} else {
		changes = append(changes, set(o, options, map[string]any{"version": "v2", "image": wanted}))
	}
	change := patch(o, changes...)
	if image == "" {
		change = change.Hint("use the image of your Heliostat")
	}
	return change
}

func sidecarMissing(x *inventory, o *Object, report reporter) {
	v, head := o.raySpec().Get("enableInTreeAutoscaling"), x.headPod(o)
	if o.Mode() == nodepool.Managed || !v.Flag() || head == nil || hasAutoscaler(head) {
		return
	}
	report(occurrence{Object: o, Path: v.Path(), Fix: restartHead(head),
		Seen: "true, and pod " + head.Name + " has no container autoscaler"})
}

func sidecarLeftOver(x *inventory, o *Object, report reporter) {
	head := x.headPod(o)
	if head != nil && !o.Cluster.InTreeAutoscaling && o.Cluster.Head.Sidecar == nodepool.RaySidecar {
		report(occurrence{Object: o, Path: o.raySpec().Path("enableInTreeAutoscaling"),
			Seen: "off, and pod " + head.Name + " has a container autoscaler", Fix: restartHead(head)})
	}
}

func restartHead(head *Object) fix {
	return run(kubectl(head, "delete")).Hint("the head restarts, which ends its jobs")
}

// hasAutoscaler reports whether the pod has the container that KubeRay adds to the head.
func hasAutoscaler(pod *Object) bool {
	return slices.ContainsFunc(pod.Root().Items("spec", "containers"), func(c fieldpath.Value) bool {
		return c.Text("name") == "autoscaler"
	})
}

func autoscalerVersionDiffers(_ *inventory, o *Object, report reporter) {
	variable, version := o.autoscalerV2Variable(), o.raySpec().Text("autoscalerOptions", "version")
	refused := variable == "1" && !o.Cluster.InTreeAutoscaling
	if !refused && (variable == "" || version == "") {
		return
	}
	at := versionVariable(o)
	report(occurrence{
		Object: o, Path: at,
		Seen: "RAY_enable_autoscaler_v2=" + variable + ", autoscalerOptions.version " + orNotSet(version),
		Fix:  patch(o, remove(at)),
	})
}

// versionVariable returns the path of the head's variable.
func versionVariable(o *Object) (at fieldpath.Path) {
	containers := o.raySpec().Items("headGroupSpec", "template", "spec", "containers")
	if len(containers) == 0 {
		return at
	}
	for _, variable := range containers[0].Items("env") {
		if strings.EqualFold(variable.Text("name"), "RAY_enable_autoscaler_v2") {
			return variable.Path()
		}
	}
	return at
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
	report(occurrence{
		Object: o, Path: v.Path(),
		Seen: orNotSet(v.String()) + ", and " + modeAnnotation + " is " + string(mode),
		Fix:  manage,
	})
}

// nothingScales reports a group with GPUs that stays at 0, with room above. Whoever turns in-tree autoscaling off has
// another autoscaler, such as Heliostat by a flag of serve or an annotation of the namespace.
func nothingScales(x *inventory, o *Object, report reporter) {
	if o.raySpec().Has("enableInTreeAutoscaling") || o.modeField().Has() || o.Cluster.Queue.Queued() ||
		len(x.ByKind["Deployment"]) > 0 {
		return
	}
	for _, g := range groupsOf(o, x.Input.Reader.Names) {
		if w := g.Workers; w == nil || w.Suspended || w.Replicas > 0 || w.Min > 0 || w.Max <= 0 ||
			!g.Has("replicas") || !g.requestsDevices() {
			continue
		}
		report(occurrence{Object: o, Path: g.Path("replicas"), Seen: fmt.Sprintf("0, maxReplicas %d", g.Workers.Max),
			Fix: run(kubectl(o, "annotate", modeAnnotation+"="+string(nodepool.Managed))).
				Hint("or set enableInTreeAutoscaling: true")})
		return // it is the same for the others
	}
}

func workerGroupsAbsent(_ *inventory, o *Object, report reporter) {
	if list := o.raySpec().Get("workerGroupSpecs"); o.raysAutoscaler() && !list.Has() {
		report(occurrence{Object: o, Path: list.Path(), Fix: patch(o, set(o, list.Path(), []any{}))})
	}
}

func inPlaceResize(_ *inventory, o *Object, report reporter) {
	v := o.Root().Get("metadata", "annotations", "ray.io/ippr")
	if v.Has() && (o.Mode() == nodepool.Managed || o.Cluster.InTreeAutoscaling && !o.raysAutoscaler()) {
		report(shows(o, v, patch(o, remove(v.Path())).Hint("or let Ray's own autoscaler scale the RayCluster")))
	}
}

func orNotSet(text string) string { return cmp.Or(text, "not set") }
