// Package fleet is a fleet of RayClusters for shards to divide: the API server and the wire to the heads are real, the
// heads are simulated in this process, and the package plays the KubeRay operator and the kubelets. Pods have no
// containers. It knows nothing of shards.
package fleet

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/rig/podstore"
	"heliostat.dev/heliostat/test/simray"
)

// Namespace is that of all RayClusters, and group the name of their only worker group and of the resource that only its
// workers have.
const (
	Namespace = "fleet"
	group     = "burst"
	// most is the maximum of the group, and idleSeconds its idle timeout.
	most, idleSeconds = 8, 2
)

// Fleet are RayClusters with their heads.
type Fleet struct {
	clusters []*cluster
	byName   map[string]*cluster
	objects  dynamic.Interface
	pods     *podstore.Store
	stop     context.CancelFunc
	tasks    sync.WaitGroup
}

// Config says where the fleet is.
type Config struct {
	// API is an administrator's access to the API server, and Etcd host:port of its storage.
	API  *rest.Config
	Etcd string
	// Network is the begin of the addresses of the heads, such as 127.160.
	Network string
	Size    int
}

// Start makes a fleet. It may return a fleet beside an error, which is to be closed then too.
func Start(ctx context.Context, config Config) (*Fleet, error) {
	api := rest.CopyConfig(config.API)
	api.QPS = -1 // the API server has its own fairness
	f := &Fleet{byName: map[string]*cluster{}, pods: podstore.New(config.Etcd, Namespace), stop: func() {}}
	kube, err := kubernetes.NewForConfig(api)
	if err != nil {
		return f, err
	}
	if f.objects, err = dynamic.NewForConfig(api); err != nil {
		return f, err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := kube.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return f, fmt.Errorf("making the namespace: %w", err)
	}
	if err := rig.CreateStandInNode(ctx, kube); err != nil {
		return f, fmt.Errorf("making the node: %w", err)
	}
	for i := range config.Size {
		c, err := newCluster(i, config.Network)
		if err != nil {
			return f, err
		}
		f.clusters = append(f.clusters, c)
		f.byName[c.owner.Name] = c
	}
	making, whole := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for _, c := range f.clusters {
		making.Go(func() error { return f.create(whole, c) })
	}
	if err := making.Wait(); err != nil {
		return f, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.tasks.Go(func() { f.follow(running) })
	return f, nil
}

// newCluster starts the head of a RayCluster.
func newCluster(i int, network string) (*cluster, error) {
	name, ip := fmt.Sprintf("cluster-%04d", i), fmt.Sprintf("%s.%d.%d", network, i/250, 1+i%250)
	head, err := simray.Start(
		simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: name + "-head", IP: ip}})
	if err != nil {
		return nil, fmt.Errorf("starting the head of %s: %w", name, err)
	}
	return &cluster{index: i, owner: podstore.Owner{Name: name}, ip: ip, head: head,
		nodes: map[string]raydemand.NodeID{}}, nil
}

// create makes a RayCluster and the pod of its head.
func (f *Fleet) create(ctx context.Context, c *cluster) error {
	manifest := rig.Cluster{Namespace: Namespace, Name: c.owner.Name, IdleSeconds: idleSeconds, Groups: []rig.Group{
		{Name: group, Max: most, Params: map[string]string{"resources": `"{\"burst\": 1}"`}},
	}}.Manifest()
	clusters := f.objects.Resource(rig.RayClusters).Namespace(Namespace)
	made, err := clusters.Create(ctx, manifest, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making RayCluster %s: %w", c.owner.Name, err)
	}
	c.owner.UID = made.GetUID()
	return f.pods.Add(ctx, f.pods.Running(c.owner, "head", "headgroup", c.owner.Name+"-head", c.ip))
}

// Size is how many RayClusters there are.
func (f *Fleet) Size() int { return len(f.clusters) }

// Submit submits a task to a RayCluster.
func (f *Fleet) Submit(i int, task simray.Task) {
	task.Bundle = raydemand.Bundle{raydemand.CPU: raydemand.One, group: raydemand.One}
	f.clusters[i].head.Submit(task)
}

// Close ends the heads and the operator.
func (f *Fleet) Close() {
	f.stop()
	f.tasks.Wait()
	for _, c := range f.clusters {
		c.head.Close()
	}
}
