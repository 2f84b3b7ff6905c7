package kueue

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// unfollowed says why Kueue does not follow the replicas of a RayCluster for its parent, to which the queue belongs;
// empty if it does (Kueue v0.19.0, UpdatePodSets in pkg/controller/jobs/raycluster/common.go).
func (p *Owners) unfollowed(ctx context.Context, key nodepool.ClusterKey, parent decode.Controller) (string, error) {
	part, ok := map[string]struct {
		spec string
		name []string
	}{
		"RayJob":     {"rayClusterSpec", []string{"status", "rayClusterName"}},
		"RayService": {"rayClusterConfig", []string{"status", "activeServiceStatus", "rayClusterName"}},
	}[parent.Kind]
	if !ok {
		return "it follows those of a RayJob or RayService alone", nil
	}
	resource, _, err := p.resource(parent)
	if err != nil {
		return "", err
	}
	object, err := p.whole.Resource(resource).Namespace(key.Namespace).
		Get(ctx, parent.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if flag, _, _ := unstructured.NestedBool(object.Object, "spec", part.spec, "enableInTreeAutoscaling"); !flag {
		return fmt.Sprintf("%s %s has no spec.%s.enableInTreeAutoscaling: true", parent.Kind, parent.Name,
			part.spec), nil
	}
	if name, _, _ := unstructured.NestedString(object.Object, part.name...); name != key.Name {
		return fmt.Sprintf("%s of %s %s is %q, so it is not its active RayCluster", strings.Join(part.name, "."),
			parent.Kind, parent.Name, name), nil
	}
	return "", nil
}
