package kube

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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

// ofHead matches what KubeRay says of the head.
var ofHead = regexp.MustCompile(`^headGroupSpec | head Pod | (for|in) Head group[;:]`)

// Judge marks a RayCluster whose spec the operator refuses, and says why in its own words. The operator then stops
// working on every group, emits the Event InvalidRayClusterSpec, and no condition of the status says so
// (docs/reference/facts.md#refused-spec). An operator that has accepted the generation knows better, perhaps in another
// version.
func Judge(object map[string]any, d *decode.Decoded) {
	if !accepted(&d.Cluster) {
		judge(object, d, nil)
	}
}

func accepted(c *nodepool.Cluster) bool {
	return c.Generation > 0 && c.ObservedGeneration >= c.Generation
}

// judge is Judge for a generation that the operator has not observed. tolerated is the OperatorVerdict of an earlier
// one, which it has accepted: the operator observes each patch of ours a little later, and that must not close the
// groups until then.
func judge(object map[string]any, d *decode.Decoded, tolerated error) {
	c := &d.Cluster
	err := OperatorVerdict(object)
	if c.Unreadable || err != nil && tolerated != nil && err.Error() == tolerated.Error() {
		return
	}
	for _, g := range c.Groups {
		c.Refused = c.Refused || g.Min < 0 || g.Max < 0 || g.Min > g.Max // decode.MinAboveMax says why
	}
	if c.Refused {
		return
	}
	finding := raydemand.Finding{Code: nodepool.SpecRefused, Severity: raydemand.Error,
		Object: "RayCluster " + c.Key.String(), Fix: "correct it"}
	spec := decode.FieldsOf(object, nil).Object("spec")
	hasContainer := func(f decode.Fields) bool {
		return len(f.Object("template").Object("spec").Objects("containers")) > 0
	}
	switch head := spec.Object("headGroupSpec"); {
	case !slices.ContainsFunc(append(spec.Objects("workerGroupSpecs"), head), hasContainer):
		err, finding.Seen = errors.New("no pod template has a container"), "no container"
		finding.Field, finding.Fix = "spec", "add the containers; of a patch, examine what `kubectl kustomize` prints"
	case err == nil:
		return
	default:
		finding.Field = refusedField(err.Error(), c.Groups)
	}
	for i, group := range spec.Objects("workerGroupSpecs") {
		if strings.HasPrefix(err.Error(), "workerGroupSpec ") && !hasContainer(group) {
			finding.Field = fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers", i)
			break
		}
	}
	c.Refused = true
	finding.Why = err.Error() + "; the operator rejects the spec and changes no group until this is fixed"
	d.Findings = append(d.Findings, finding)
}

// refusedField returns which part of the spec KubeRay means.
func refusedField(says string, groups []nodepool.WorkerGroup) string {
	if ofHead.MatchString(says) {
		return "spec.headGroupSpec"
	}
	for i, g := range groups {
		name := regexp.QuoteMeta(g.Name)
		if regexp.MustCompile("worker group " + name + "[ :]| (for|in) " + name + " group[;:]").MatchString(says) {
			return fmt.Sprintf("spec.workerGroupSpecs[%d]", i)
		}
	}
	return "spec"
}
