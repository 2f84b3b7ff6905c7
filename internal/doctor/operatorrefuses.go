package doctor

import (
	"cmp"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// operatorRefuses reports the first reason for which the operator refuses an object, in its own words, unless decoding
// the RayCluster in it has found one with its field.
func operatorRefuses(_ *inventory, o *Object, report reporter) {
	if c := o.Cluster; c != nil && (c.Refused || c.Unreadable || versionVariable(o) != (fieldpath.Path{}) ||
		c.Generation > 0 && c.ObservedGeneration >= c.Generation) || !o.Read() || len(rayViolations(o)) > 0 {
		return
	}
	if err := operatorVerdict(o); err != nil {
		at := fieldpath.NewPath("spec")
		if strings.Contains(err.Error(), " name should ") {
			at = fieldpath.NewPath("metadata").Key("name")
		}
		report(occurrence{Object: o, Path: at, More: err.Error(), Fix: edit(o, "correct it")})
	}
}

// operatorVerdict is what the operator's own functions say of an object, after the defaults of the CRDs that they rely
// on. It is nil for an object that cannot be read as its kind: other checks report that.
func operatorVerdict(o *Object) error {
	read := func(into metav1.Object) bool {
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Fields, into)
		into.SetName(cmp.Or(into.GetName(), "generated"))
		return err == nil
	}
	switch o.Kind {
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
