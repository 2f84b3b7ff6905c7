package kube

import (
	"cmp"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OperatorVerdict is what the functions with which KubeRay 1.6.2 validates an object say of it, after the defaults of
// the CRDs that they rely on. It is nil for an object that cannot be read as its kind.
func OperatorVerdict(object map[string]any) error {
	read := func(into metav1.Object) bool {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
		into.SetName(cmp.Or(into.GetName(), "generated"))
		return err == nil
	}
	switch object["kind"] {
	case "RayCluster":
		var typed rayv1.RayCluster
		if read(&typed) {
			withDefaults(&typed.Spec)
			return cmp.Or(utils.ValidateRayClusterMetadata(typed.ObjectMeta),
				utils.ValidateRayClusterSpec(&typed.Spec, typed.Annotations),
				utils.ValidateRayClusterUpgradeOptions(&typed))
		}
	case "RayJob":
		var typed rayv1.RayJob
		if read(&typed) {
			withDefaults(typed.Spec.RayClusterSpec)
			return cmp.Or(utils.ValidateRayJobMetadata(typed.ObjectMeta), utils.ValidateRayJobSpec(&typed))
		}
	case "RayService":
		var typed rayv1.RayService
		if read(&typed) {
			withDefaults(&typed.Spec.RayClusterSpec)
			err := cmp.Or(utils.ValidateRayServiceMetadata(typed.ObjectMeta), utils.ValidateRayServiceSpec(&typed))
			const incremental = rayv1.RayServiceNewClusterWithIncrementalUpgrade
			upgrade := typed.Spec.UpgradeStrategy
			if upgrade == nil || upgrade.Type == nil || *upgrade.Type != incremental {
				return err
			}
			if upgrade.ClusterUpgradeOptions != nil {
				fill(&upgrade.ClusterUpgradeOptions.MaxSurgePercent, 100)
			}
			return cmp.Or(err, utils.ValidateClusterUpgradeOptions(&typed)) // behind a feature gate that is off in 1.6
		}
	case "RayCronJob":
		var typed rayv1.RayCronJob
		if read(&typed) {
			withDefaults(typed.Spec.JobTemplate.RayClusterSpec)
			return utils.ValidateRayCronJobSpec(&typed)
		}
	}
	return nil
}

func withDefaults(spec *rayv1.RayClusterSpec) {
	if spec == nil {
		return
	}
	for i := range spec.WorkerGroupSpecs {
		fill(&spec.WorkerGroupSpecs[i].MinReplicas, 0)
		fill(&spec.WorkerGroupSpecs[i].MaxReplicas, nodepool.NoMaximum)
	}
}

func fill(field **int32, value int32) {
	if *field == nil {
		*field = &value
	}
}

// judge marks a RayCluster that the operator refuses, by its own rules where decoding knows none. An operator that has
// ever accepted the RayCluster knows better, perhaps in another version: each patch of ours makes a new generation,
// which it observes later, and must not close the groups until then.
func judge(object map[string]any, d *decode.Decoded) {
	c := &d.Cluster
	if c.Refused || c.Unreadable || c.ObservedGeneration > 0 {
		return
	}
	if err := OperatorVerdict(object); err != nil {
		c.Refused = true
		d.Findings = append(d.Findings, raydemand.Finding{Code: nodepool.SpecRefused, Severity: raydemand.Error,
			Object: "RayCluster " + c.Key.String(), Field: "spec",
			Why: err.Error() + "; the operator rejects the spec and changes no group until this is fixed",
			Fix: "correct it"})
	}
}
