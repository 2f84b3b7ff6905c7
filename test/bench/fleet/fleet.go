package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/rig/podstore"
)

// perNamespace is how many RayClusters share a namespace, if NAMESPACES says nothing else. With 50 workers each, their
// pods stay below the 3,000 per namespace for which Kubernetes is tested.
const perNamespace = 50

// patience is for what Heliostat does by itself.
const patience = 2 * time.Minute

// fleet is Heliostat at work on many RayClusters.
type fleet struct {
	*rig.Rig
	heliostat *rig.Heliostat
	heads     *heads
	nodes     nodes
	spaces    []space
	owners    []podstore.Owner
	workers   int
	madeIn    time.Duration
	http      *http.Client
	kube      kubernetes.Interface // without a limit of its own, as is objects
	objects   dynamic.Interface
	calls     atomic.Int64 // what this command has asked of the API server
	profile   string       // where serve answers for profiles
}

// newFleet may return a fleet beside an error; it is to be closed then too.
func newFleet(ctx context.Context, r *rig.Rig, clusters, workers int) (*fleet, error) {
	f := &fleet{Rig: r, http: &http.Client{Timeout: time.Minute}, workers: workers,
		owners: make([]podstore.Owner, clusters), nodes: nodes{number("NODES", 0)}}
	spaces := number("NAMESPACES", (clusters+perNamespace-1)/perNamespace)
	for i := range max(spaces, 1) {
		name := fmt.Sprintf("fleet-%d", i)
		f.spaces = append(f.spaces, space{name, podstore.New(r.Cluster.Etcd(), name)})
	}
	begun := time.Now()
	if err := f.connect(); err != nil {
		return nil, err
	}
	for _, space := range f.spaces {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space.name}}
		if _, err := f.kube.CoreV1().Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("making the namespace: %w", err)
		}
	}
	if err := f.nodes.create(ctx, f); err != nil {
		return nil, fmt.Errorf("making nodes: %w", err)
	}
	var err error
	if f.heads, err = startHeads(); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range clusters {
		group.Go(func() error { return f.add(ctx, i) })
	}
	err = group.Wait()
	f.madeIn = time.Since(begun)
	return f, err
}

// space is a namespace and the store of its pods.
type space struct {
	name    string
	storage *podstore.Store
}

// space returns the namespace of a RayCluster.
func (f *fleet) space(cluster int) space { return f.spaces[cluster%len(f.spaces)] }

// connect makes clients without a limit of their own, whose calls are counted.
func (f *fleet) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", f.Cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &f.calls} })
	if f.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	f.kube, err = kubernetes.NewForConfig(config)
	return err
}

// counted counts calls.
type counted struct {
	next  http.RoundTripper
	calls *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.next.RoundTrip(r)
}

// add makes a RayCluster with its head and the pods that its operator would have made. The workers of group cpu stay:
// they are its minimum.
func (f *fleet) add(ctx context.Context, i int) error {
	if err := f.heads.do(order{Do: "start", Cluster: i, Workers: f.workers}); err != nil {
		return err
	}
	name, workers, space := clusterName(i), int64(f.workers), f.space(i)
	manifest := rig.Cluster{
		Namespace: space.name, Name: name, IdleSeconds: 5,
		Groups: []rig.Group{
			{Name: "cpu", Replicas: workers, Min: workers, Max: workers, CPU: "8"},
			{Name: burst, Max: 8, CPU: "8", Params: map[string]string{"resources": `"{\"burst\": 1}"`}},
		},
	}.Manifest()
	made, err := f.objects.Resource(rig.RayClusters).Namespace(space.name).Create(ctx, manifest, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making RayCluster %s: %w", name, err)
	}
	f.owners[i] = podstore.Owner{Name: name, UID: made.GetUID()}
	head := space.storage.Running(f.owners[i], "head", "headgroup", name+"-head", headAddress(i))
	pods := []*corev1.Pod{f.nodes.bind(head, i, f.workers)}
	for worker := range f.workers {
		pod := space.storage.Running(f.owners[i], "worker", "cpu", workerName(i, worker), workerAddress(i, worker))
		pods = append(pods, f.nodes.bind(pod, i, worker))
	}
	return space.storage.Add(ctx, pods...)
}

// serve starts Heliostat, and prints how long it takes to decide about every RayCluster.
func (f *fleet) serve(ctx context.Context) (err error) {
	if f.profile, err = rig.FreeAddress("127.0.0.1"); err != nil {
		return err
	}
	begun := time.Now()
	before, err := f.apiServer(ctx)
	if err != nil {
		return err
	}
	f.heliostat, err = f.Serve(ctx, "--requests-per-second", "0", "--log-level", "error",
		"--pprof-bind-address", f.profile)
	if err != nil {
		return err
	}
	ready := time.Since(begun)
	for decided := 0; decided < len(f.owners); time.Sleep(200 * time.Millisecond) {
		list, err := f.list(ctx)
		if err != nil {
			return err
		}
		decided = 0
		var missing apiv1.ClusterSummary
		for _, cluster := range list {
			if cluster.DataAgeSeconds != nil && cluster.Workers.Ready == f.workers {
				decided++
			} else {
				missing = cluster
			}
		}
		if time.Since(begun) > patience {
			return fmt.Errorf(
				"only %d of %d RayClusters are decided about, and not %+v; the log ends with:\n%s",
				decided,
				len(f.owners),
				missing,
				f.heliostat.LastLines(5),
			)
		}
	}
	after, err := f.apiServer(ctx)
	fmt.Printf("ready after %.1f s, all decided after %.1f s; the API server rejected %.0f calls\n",
		ready.Seconds(), time.Since(begun).Seconds(), after.rejected-before.rejected)
	return err
}

// list returns all RayClusters as Heliostat shows them.
func (f *fleet) list(ctx context.Context) ([]apiv1.ClusterSummary, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.heliostat.URL+"/v1/rayclusters", nil)
	if err != nil {
		return nil, err
	}
	response, err := f.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list apiv1.ClusterList
	return list.Items, json.NewDecoder(response.Body).Decode(&list)
}

func (f *fleet) close() {
	if f.heliostat != nil {
		f.heliostat.Kill()
	}
	if f.heads != nil {
		f.heads.close()
	}
}

// replicasOf returns the replicas of group burst and the pods that it names for deletion.
func replicasOf(cluster *unstructured.Unstructured) (replicas int64, named []string, err error) {
	groups, _, err := unstructured.NestedSlice(cluster.Object, "spec", "workerGroupSpecs")
	if err != nil {
		return 0, nil, err
	}
	for _, g := range groups {
		group, isObject := g.(map[string]any)
		if !isObject || group["groupName"] != burst {
			continue
		}
		var err2 error
		replicas, _, err = unstructured.NestedInt64(group, "replicas")
		named, _, err2 = unstructured.NestedStringSlice(group, "scaleStrategy", "workersToDelete")
		return replicas, named, errors.Join(err, err2)
	}
	return 0, nil, fmt.Errorf("%s has no group %s", cluster.GetName(), burst)
}
