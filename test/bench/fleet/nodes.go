package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// workerRequests are those of the pods of all worker groups; heads on these nodes request the same.
var workerRequests = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("1Gi"),
}

// nodes are the nodes of the fleet's pods: count nodes, or with 0 the one that limits nothing.
type nodes struct{ count int }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// create makes the nodes. Each has room for its share of all pods and for eight more workers.
func (n nodes) create(ctx context.Context, f *fleet) error {
	if n.count == 0 {
		return rig.CreateStandInNode(ctx, f.kube)
	}
	share := (len(f.owners)*(f.workers+1)+n.count-1)/n.count + 8 // heads request as much as workers
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(share)*8, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(share)*2<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(share)+110, resource.DecimalSI),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range n.count {
		group.Go(func() error {
			return rig.CreateNode(ctx, f.kube, metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
				corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
				corev1.LabelTopologyRegion: "region", corev1.LabelInstanceTypeStable: "large",
				corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
			}}, room)
		})
	}
	return group.Wait()
}

// bind puts a pod of a RayCluster on a node. number counts the RayCluster's pods, so that they are on different nodes.
func (n nodes) bind(pod *corev1.Pod, cluster, number int) *corev1.Pod {
	if n.count == 0 {
		return pod
	}
	pod.Spec.NodeName = nodeName((cluster + number*7919) % n.count)
	pod.Spec.Containers[0].Resources.Requests = workerRequests
	return pod
}
