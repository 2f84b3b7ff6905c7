package controller

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestWaitingDemandInShadowIsReportedWithTheWayOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*nodepool.Cluster)
		allow  string
	}{
		"nobody asked":            {func(*nodepool.Cluster) {}, "to let Heliostat scale it: `autoscaler manage ml/llm`, or annotate it, or Namespace ml, with heliostat.dev/mode: managed"},
		"shadow was asked for":    {func(c *nodepool.Cluster) { c.NamespaceMode = nodepool.Shadow }, "`autoscaler manage ml/llm`"},
		"frozen":                  {func(c *nodepool.Cluster) { c.Mode, c.Freeze = nodepool.Managed, true }, "`autoscaler unfreeze ml/llm` resumes scaling"},
		"Ray's own scales it":     {func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.RaySidecar }, "`autoscaler manage ml/llm` is not enough: Ray's own autoscaler runs"},
		"our sidecar scales it":   {func(c *nodepool.Cluster) { c.Head.Sidecar = nodepool.OurSidecar }, "manages it"},
		"its namespace is hidden": {hiddenNamespace, "grant get, list and watch on namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{DefaultMode: nodepool.Shadow}, gpuGroup("gpu", 0, 0, 9))
			c.change(&w.kube.cluster)
			w.want(2, gpu(1))
			d := w.cycle()
			if d.OptIn == nil || d.OptIn.Waiting != "demand is waiting, and Heliostat would launch 2 × gpu" || !strings.Contains(d.OptIn.Allow, c.allow) {
				t.Fatalf("opt-in = %+v, want two launches and the way out %q", d.OptIn, c.allow)
			}
			w.want(0, nil)
			if d := w.after(time.Second); d.OptIn.Waiting != "" {
				t.Errorf("waiting = %q though nothing does", d.OptIn.Waiting)
			}
			w.nothingWritten("shadow")
		})
	}
}

// The three forms of docs/running.md#in-tree-autoscaling-stays-on, and Ray's own autoscaler.
func TestOptingInSaysWhichAutoscalerTheHeadHas(t *testing.T) {
	const patch = `{"enableInTreeAutoscaling":true,"autoscalerOptions":{"image":"'"${HELIOSTAT_IMAGE:?}"'"}}`
	for name, c := range map[string]struct {
		cluster     nodepool.Cluster
		says, patch string
	}{
		"Heliostat's image": {nodepool.Cluster{InTreeAutoscaling: true, Head: nodepool.Head{Sidecar: nodepool.OurSidecar}}, "with Heliostat's image", ""},
		"another command":   {nodepool.Cluster{InTreeAutoscaling: true}, "no container of the head pod scales", ""},
		"no container": {nodepool.Cluster{}, "the head keeps running; HELIOSTAT_IMAGE is the image",
			`kubectl patch -n ml raycluster llm --type=merge -p '{"spec":` + patch + `}'`},
		"the cluster is replaced": {nodepool.Cluster{UpgradeStrategy: "Recreate"}, "replaces the RayCluster", "raycluster llm"},
		"a RayService": {nodepool.Cluster{Owner: nodepool.Owner{Kind: "RayService", Name: "chat"}}, "replaces the RayCluster",
			`rayservice chat --type=merge -p '{"spec":{"rayClusterConfig":` + patch + `}}'`},
		"a suspended group": {nodepool.Cluster{Groups: []nodepool.WorkerGroup{{Suspended: true}}}, "cannot be turned on now", ""},
		"Ray's own autoscaler of a RayService": {nodepool.Cluster{Owner: nodepool.Owner{Kind: "RayService", Name: "chat"}, Head: nodepool.Head{Pod: "llm-head",
			Sidecar: nodepool.RaySidecar}}, "and the RayCluster is replaced", `:?}"'"}}}}'`},
		"Ray's own autoscaler": {nodepool.Cluster{InTreeAutoscaling: true, Head: nodepool.Head{Pod: "llm-head", Sidecar: nodepool.RaySidecar}},
			"the head restarts", `}' && kubectl delete pod -n ml llm-head`},
	} {
		c.cluster.Key = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
		o := optIn(&c.cluster, planner.Reason{}, planner.Reason{})
		if !strings.Contains(o.Autoscaler, c.says) || !strings.Contains(o.Patch, c.patch) || (o.Patch == "") != (c.patch == "") ||
			strings.Contains(o.Patch, "delete pod") && c.cluster.Owner.Kind != "" {
			t.Errorf("%s: %q, %q", name, o.Autoscaler, o.Patch)
		}
	}
}
