package simulated

import (
	"context"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// patience bounds each wait. On a quiet machine none takes 15 s.
const patience = 4 * time.Minute

// lab is a control plane with one RayCluster, whose head is simulated.
type lab struct {
	*testing.T
	*rig.Rig
	namespace, name string
	head            *simray.Head
	headIP          string
	heliostat       *rig.Heliostat
}

// start starts a control plane and a head for a RayCluster that does not exist yet. Heads of tests that may run at the
// same time have different addresses.
func start(t *testing.T, name, headIP string) *lab {
	t.Helper()
	rig.Quiet()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	l := &lab{T: t, namespace: "ml", name: name, headIP: headIP}
	var err error
	l.Rig, err = rig.Start(ctx, rig.Options{Out: os.Stderr, ControlPlaneOnly: true})
	l.must(err)
	t.Cleanup(func() {
		if l.heliostat != nil {
			l.heliostat.Kill()
		}
		if err := l.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.head, err = simray.Start(simray.Options{Address: headIP + ":6379", Head: simray.Node{Instance: name + "-head", IP: headIP}})
	l.must(err)
	t.Cleanup(l.head.Close)
	return l
}

// create creates the RayCluster with one group, and the pod of its head.
func (l *lab) create(idleSeconds int64, group rig.Group) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	cluster := rig.Cluster{Namespace: l.namespace, Name: l.name, IdleSeconds: idleSeconds, Groups: []rig.Group{group}}
	l.must(l.Create(ctx, cluster.Manifest()))
	l.must(rig.StandInHead(ctx, l.Kube, l.cluster(), l.headIP))
}

// cluster reads the RayCluster.
func (l *lab) cluster() *unstructured.Unstructured {
	l.Helper()
	client := l.Dynamic.Resource(rig.RayClusters).Namespace(l.namespace)
	object, err := client.Get(l.Context(), l.name, metav1.GetOptions{})
	l.must(err)
	return object
}

// replicas returns the replicas of the only group.
func (l *lab) replicas() int64 {
	l.Helper()
	groups, _, err := unstructured.NestedSlice(l.cluster().Object, "spec", "workerGroupSpecs")
	l.must(err)
	replicas, _, err := unstructured.NestedInt64(groups[0].(map[string]any), "replicas")
	l.must(err)
	return replicas
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}
