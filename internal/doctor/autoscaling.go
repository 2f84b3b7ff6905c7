package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Which autoscaler a RayCluster has: docs/reference/facts.md#sidecar-after-a-toggle.

func sidecarBesideUs(x *inventory.Inventory, o *inventory.Object, report reporter) {
	head := x.HeadPod(o)
	if o.Cluster.Head.Sidecar != nodepool.RaySidecar || head == nil || o.Mode() != nodepool.Managed {
		return
	}
	disable := fix.Patch(o, fix.Set(o, o.RaySpec().Path("enableInTreeAutoscaling"), false))
	report(occurrence{
		Object: o, Path: o.ModeField().Path(), Seen: "managed, and pod " + head.Name + " has a container autoscaler",
		Fix: disable.Then(fix.Kubectl(head, "delete")).
			Hint("the head restarts, which ends its jobs; or annotate " + inventory.ModeAnnotation + "=shadow"),
	})
}

func sidecarMissing(x *inventory.Inventory, o *inventory.Object, report reporter) {
	v, head := o.RaySpec().Get("enableInTreeAutoscaling"), x.HeadPod(o)
	if o.Mode() == nodepool.Managed || !v.Flag() || head == nil || hasAutoscaler(head) {
		return
	}
	report(occurrence{Object: o, Path: v.Path(), Fix: restartHead(head),
		Seen: "true, and pod " + head.Name + " has no container autoscaler"})
}

func sidecarLeftOver(x *inventory.Inventory, o *inventory.Object, report reporter) {
	head := x.HeadPod(o)
	if head != nil && !o.Cluster.InTreeAutoscaling && o.Cluster.Head.Sidecar == nodepool.RaySidecar {
		report(occurrence{Object: o, Path: o.RaySpec().Path("enableInTreeAutoscaling"),
			Seen: "off, and pod " + head.Name + " has a container autoscaler", Fix: restartHead(head)})
	}
}

func restartHead(head *inventory.Object) fix.Fix {
	return fix.Run(fix.Kubectl(head, "delete")).Hint("the head restarts, which ends its jobs")
}

// hasAutoscaler reports whether the pod has the container that KubeRay adds to the head.
func hasAutoscaler(pod *inventory.Object) bool {
	return slices.ContainsFunc(pod.Root().Items("spec", "containers"), func(c fieldpath.Value) bool {
		return c.Text("name") == "autoscaler"
	})
}

func autoscalerVersionDiffers(_ *inventory.Inventory, o *inventory.Object, report reporter) {
	variable, version := o.AutoscalerV2Variable(), o.RaySpec().Text("autoscalerOptions", "version")
	refused := variable == "1" && !o.Cluster.InTreeAutoscaling
	if !refused && !(variable == "1" && version == "v1") && !(variable == "0" && version == "v2") {
		return
	}
	at := versionVariable(o)
	report(occurrence{
		Object: o, Path: at,
		Seen: "RAY_enable_autoscaler_v2=" + variable + ", autoscalerOptions.version " + orNotSet(version),
		Fix:  fix.Patch(o, fix.Remove(at)),
	})
}

// versionVariable returns the path of the head's variable.
func versionVariable(o *inventory.Object) (at fieldpath.Path) {
	containers := o.RaySpec().Items("headGroupSpec", "template", "spec", "containers")
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

func surplusDeletedAtRandom(_ *inventory.Inventory, o *inventory.Object, report reporter) {
	v, mode := o.RaySpec().Get("enableInTreeAutoscaling"), o.Mode()
	if mode != nodepool.Shadow && mode != nodepool.Off || v.Flag() {
		return
	}
	manage := fix.Kubectl(o, "annotate", "--overwrite", inventory.ModeAnnotation+"="+string(nodepool.Managed))
	report(occurrence{
		Object: o, Path: v.Path(),
		Seen: orNotSet(v.String()) + ", and " + inventory.ModeAnnotation + " is " + string(mode),
		Fix:  fix.Run(manage).Hint("or make sure that whoever lowers replicas sets workersToDelete"),
	})
}

func orNotSet(text string) string { return cmp.Or(text, "not set") }
