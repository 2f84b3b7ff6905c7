package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// perNamespace is how many RayClusters a namespace has: an owner may have 200 valid requests in one.
const perNamespace = 10

func namespaceOf(cluster int) string { return fmt.Sprintf("bench-%03d", cluster/perNamespace) }

// room is how many CPUs each RayCluster's worker has: more than all that is asked of it at once.
const room = 100_000_000

// fleet is Heliostat at work on many RayClusters, each with a simulated head and one worker that has room for
// everything: nothing is launched, so that the API and the loop are measured and not the API server under patches.
type fleet struct {
	*rig.Rig
	heliostat *rig.Heliostat
	keys      []nodepool.ClusterKey
	heads     []*simray.Head
	http      *http.Client
	objects   dynamic.Interface // without a limit of its own
}

// newFleet may return a fleet beside an error; it is to be closed then too.
func newFleet(ctx context.Context, r *rig.Rig, clusters int) (*fleet, error) {
	f := &fleet{Rig: r, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	if err := f.prepare(ctx, clusters); err != nil {
		return nil, err
	}
	kube, err := f.eager()
	if err != nil {
		return nil, err
	}
	f.keys, f.heads = make([]nodepool.ClusterKey, clusters), make([]*simray.Head, clusters)
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range clusters {
		group.Go(func() error { return f.add(ctx2, kube, i) })
	}
	return f, group.Wait()
}

// serve starts Heliostat, with its own limits but that on callers, since here all calls are of one, and waits until it
// has decided about every RayCluster.
func (f *fleet) serve(ctx context.Context) (err error) {
	if f.heliostat, err = f.Serve(ctx, "--requests-per-second", "0", "--log-level", "error"); err != nil {
		return err
	}
	if err := f.seen(ctx); err != nil {
		return err
	}
	return f.served(ctx)
}

// eager makes clients without a limit of their own.
func (f *fleet) eager() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.Cluster.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	if f.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// prepare makes the namespaces and the definition of ResourceRequests.
func (f *fleet) prepare(ctx context.Context, clusters int) error {
	for i := 0; i < clusters; i += perNamespace {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}
		if _, err := f.Kube.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making a namespace: %w", err)
		}
	}
	text, err := os.ReadFile("../deploy/chart/crds/heliostat.dev_resourcerequests.yaml")
	if err != nil {
		return fmt.Errorf("reading the definition of ResourceRequests (run this in the folder test): %w", err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		return fmt.Errorf("reading the definition of ResourceRequests: %w", err)
	}
	resource := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	_, err = f.Dynamic.Resource(resource).Create(ctx, definition, metav1.CreateOptions{})
	return err
}

// add makes a RayCluster and the pods that its operator would have made. Each head listens on an address of its own.
func (f *fleet) add(ctx context.Context, kube kubernetes.Interface, i int) error {
	key := nodepool.ClusterKey{Namespace: namespaceOf(i), Name: fmt.Sprintf("cluster-%04d", i)}
	ip := fmt.Sprintf("127.77.%d.%d", i/250, 1+i%250)
	head, err := simray.Start(
		simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: key.Name + "-head", IP: ip}})
	if err != nil {
		return fmt.Errorf("starting the head of %s: %w", key, err)
	}
	f.keys[i], f.heads[i] = key, head
	worker := key.Name + "-worker"
	head.AddNode(
		simray.Node{
			Instance:  worker,
			Group:     "cpu",
			IP:        "10.0.0.1",
			Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(room)},
		},
	)
	manifest := rig.Cluster{
		Namespace: key.Namespace,
		Name:      key.Name,
		Groups:    []rig.Group{{Name: "cpu", Replicas: 1, Min: 1, Max: 10, CPU: strconv.Itoa(room)}},
	}.Manifest()
	rayClusters := f.objects.Resource(rig.RayClusters).Namespace(key.Namespace)
	made, err := rayClusters.Create(ctx, manifest, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making RayCluster %s: %w", key, err)
	}
	if err := rig.StandInHead(ctx, kube, made, ip); err != nil {
		return err
	}
	return rig.StandInWorker(ctx, kube, made, "cpu", worker, "10.0.0.1")
}

func (f *fleet) close() {
	if f.heliostat != nil {
		f.heliostat.Kill()
	}
	for _, head := range f.heads {
		if head != nil {
			head.Close()
		}
	}
}
