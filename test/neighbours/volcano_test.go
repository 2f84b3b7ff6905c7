package neighbours

import (
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler/volcano"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// TestALaunchMovesVolcanosFloorUnlessInTreeAutoscalingIsOn calls the operator's own code before and after a launch of
// two workers: Volcano, which does not build here, starts pods only if minMember of them fit.
func TestALaunchMovesVolcanosFloorUnlessInTreeAutoscalingIsOn(t *testing.T) {
	for inTree, want := range map[bool]int32{false: 3, true: 1} {
		api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
		scheduler, err := (&volcano.VolcanoBatchSchedulerFactory{}).New(t.Context(), nil, api)
		if err != nil {
			t.Fatal(err)
		}
		cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "llm"}, Spec: rayv1.RayClusterSpec{
			EnableInTreeAutoscaling: &inTree, WorkerGroupSpecs: []rayv1.WorkerGroupSpec{
				{Replicas: new(int32), MinReplicas: new(int32), MaxReplicas: new(int32(4)), NumOfHosts: 1}}}}
		for _, replicas := range []int32{0, 2} {
			cluster.Spec.WorkerGroupSpecs[0].Replicas = &replicas
			if err := scheduler.DoBatchSchedulingOnSubmission(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}
		var group v1beta1.PodGroup
		err = api.Get(t.Context(), types.NamespacedName{Namespace: "ml", Name: "ray-llm-pg"}, &group)
		if err != nil || group.Spec.MinMember != want {
			t.Errorf("with enableInTreeAutoscaling %v, minMember is %d, %v; want %d", inTree, group.Spec.MinMember, err, want)
		}
	}
}
