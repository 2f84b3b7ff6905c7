package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What the namespace allows its pods: ResourceQuotas, and claims of volumes that one pod can use.

// quotaExceeded reports how many pods of a group the quotas of the namespace allow, if that is below its maximum, and
// containers for which one refuses all pods of the group or the head.
func quotaExceeded(x *inventory, g rayGroup, report reporter) {
	pods := int64(g.Pods.Max) * int64(max(1, g.Pods.NumOfHosts))
	for _, o := range x.ByKind["ResourceQuota"] {
		var quota corev1.ResourceQuota
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Fields, &quota)
		if o.Namespace != g.Of.Namespace || err != nil || !decode.QuotaForAllPods(&quota) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			hard := quota.Spec.Hard[key]
			if hard.Sign() < 0 {
				continue // object-unreadable reports it
			}
			if silent := decode.UnstatedForQuota(key, g.Pods.Unstated); len(silent) > 0 {
				report(occurrence{Path: g.template().Path("containers"), Severity: raydemand.Error,
					Seen: fmt.Sprintf("no %s of %s", key, strings.Join(silent, ", ")),
					Why:  "the API server refuses every pod of the group",
					More: fmt.Sprintf("ResourceQuota %s has %s, so each container has to state it", o.Name, key),
					Fix:  edit("set it, or have a LimitRange of the namespace give it by default")})
				continue
			}
			each := decode.TakesOfQuota(key, &g.Pods.Pod)
			if each <= 0 || g.Workers == nil {
				continue
			}
			beside := decode.Amount(hard).Plus(-decode.TakesOfQuota(key, &g.Of.Head.Pod))
			fit := int64(max(beside, 0) / each)
			if pods <= fit || fit > 0 && g.Workers.Max > mostMaximum {
				continue
			}
			found := occurrence{Path: g.Path("maxReplicas"),
				Seen: fmt.Sprintf("%d, and ResourceQuota %s has %s for %s", g.Workers.Max, o.Name, &hard, key),
				More: fmt.Sprintf("at most %d pods of the group beside the head", fit),
				Fix:  edit("lower maxReplicas, or have the quota raised")}
			if fit <= 0 {
				found.Severity = raydemand.Error
			}
			report(found)
		}
	}
}

// claimOfOnePod reports a group of several pods that share a claim of a volume that one pod, or one node, can use.
func claimOfOnePod(x *inventory, g rayGroup, report reporter) {
	pods := int64(g.Workers.Max) * int64(max(1, g.Workers.NumOfHosts))
	for _, volume := range g.template().Items("volumes") {
		name := volume.Get("persistentVolumeClaim", "claimName")
		claim := x.find("PersistentVolumeClaim", g.Of.Namespace, name.Text())
		if claim == nil || pods < 2 {
			continue
		}
		modes := claim.Root().Items("spec", "accessModes")
		if len(modes) != 1 || modes[0].Text() != "ReadWriteOncePod" && modes[0].Text() != "ReadWriteOnce" {
			continue
		}
		found := occurrence{Path: name.Path(), Seen: name.Text() + " of mode " + modes[0].Text(),
			Fix: edit("set maxReplicas to 1, or use a claim of mode ReadWriteMany")}
		if modes[0].Text() == "ReadWriteOnce" {
			found.Severity = raydemand.Info
			found.Why = "the pods that use the claim can run on one node only, so those on others wait for ever"
		}
		report(found)
	}
}
