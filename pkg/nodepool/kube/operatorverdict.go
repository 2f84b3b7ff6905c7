package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Judge marks a RayCluster whose spec the operator refuses, and says why in its own words. The operator then stops
// working on every group, emits the Event InvalidRayClusterSpec, and no condition of the status says so
// (docs/reference/facts.md#refused-spec). An operator that has accepted the generation knows better, perhaps in another
// version. So does one that has accepted an earlier one if the last change of the groups is ours: it observes each
// patch a little later, and that must not close the groups until then.
func Judge(object map[string]any, d *decode.Decoded) {
	c := &d.Cluster
	accepted := c.Generation > 0 && c.ObservedGeneration >= c.Generation ||
		c.ObservedGeneration > 0 && c.ScaledBy == nodepool.FieldManager
	if accepted || c.Unreadable {
		return
	}
	for _, g := range c.Groups {
		c.Refused = c.Refused || g.Min < 0 || g.Max < 0 || g.Min > g.Max // decode.MinAboveMax says why
	}
	finding := raydemand.Finding{Code: nodepool.SpecRefused, Severity: raydemand.Error,
		Object: "RayCluster " + c.Key.String(), Field: "spec", Fix: "correct it"}
	spec := decode.FieldsOf(object, nil).Object("spec")
	hasContainer := func(f decode.Fields) bool {
		return len(f.Object("template").Object("spec").Objects("containers")) > 0
	}
	var err error
	switch head := spec.Object("headGroupSpec"); {
	case c.Refused:
		return
	case !slices.ContainsFunc(append(spec.Objects("workerGroupSpecs"), head), hasContainer):
		err, finding.Seen = errors.New("no pod template has a container"), "no container"
		finding.Fix = "add the containers; of a patch, examine what `kubectl kustomize` prints"
	default:
		err = OperatorVerdict(object)
	}
	if err == nil {
		return
	}
	c.Refused = true
	says := strings.NewReplacer("head Pod", "Head").Replace(" " + err.Error() + " ")
	for i, g := range c.Groups {
		if strings.Contains(says, " "+g.Name+" ") || strings.Contains(says, " "+g.Name+": ") {
			finding.Field = fmt.Sprintf("spec.workerGroupSpecs[%d]", i)
		}
	}
	if strings.Contains(says, " Head ") || strings.Contains(says, " headGroupSpec ") {
		finding.Field = "spec.headGroupSpec"
	}
	finding.Why = err.Error() + "; the operator rejects the spec and changes no group until this is fixed"
	d.Findings = append(d.Findings, finding)
}
