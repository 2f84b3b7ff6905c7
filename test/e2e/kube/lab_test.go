// Package kube tests the adapter pkg/nodepool/kube against a real API server and the real KubeRay operator. It must not
// need nodes: pods stay pending, and deleted pods are gone at once, which is enough to test replicas and names.
package kube

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
)

// patience is the limit of each wait. On an idle machine, no wait takes 20 s.
const patience = 4 * time.Minute

// lab is the control plane that all tests share. Each test has its own namespace.
var lab *devcluster.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	rig.Quiet()
	var err error
	if lab, err = devcluster.Start(context.Background(), devcluster.Options{Nodes: []nodeagent.NodeSpec{}, Out: os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := lab.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}()
	return m.Run()
}

// scene is one test's namespace.
type scene struct {
	*testing.T
	namespace string
}

func stage(t *testing.T, namespace string) *scene {
	t.Helper()
	_, err := lab.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	return &scene{T: t, namespace: namespace}
}

func (s *scene) key(name string) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: s.namespace, Name: name}
}

// create creates a RayCluster with groups of plain pods.
func (s *scene) create(name string, groups ...rig.Group) {
	s.Helper()
	s.createAs(rig.Cluster{Namespace: s.namespace, Name: name, Groups: groups}.Manifest())
}

func (s *scene) createAs(manifest *unstructured.Unstructured) {
	s.Helper()
	if _, err := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Create(s.Context(), manifest, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) patch(name string, kind types.PatchType, patch string) {
	s.Helper()
	if _, err := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Patch(s.Context(), name, kind, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) get(name string) *unstructured.Unstructured {
	s.Helper()
	object, err := lab.Dynamic().Resource(rig.RayClusters).Namespace(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	must(s, err)
	return object
}

// workers lists the worker pods of a group that are not being deleted, sorted by name.
func (s *scene) workers(cluster, group string) []string {
	s.Helper()
	pods, err := lab.Client().CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{
		LabelSelector: "ray.io/cluster=" + cluster + ",ray.io/node-type=worker,ray.io/group=" + group,
	})
	must(s, err)
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// until waits until holds returns true. Changes take longer on a busy machine.
func (s *scene) until(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("waited %v for: %s", patience, what)
		}
	}
}

// manager starts a manager that does not reconcile. The test itself calls its write methods. The manager stops when the
// test ends.
func (s *scene) manager(options kube.Options) *kube.Manager {
	s.Helper()
	manager, _ := s.managerWith(options, nil)
	return manager
}

// managerWith starts a manager with the given reconcile function. It returns a channel that receives the error of
// Start.
func (s *scene) managerWith(options kube.Options, reconcile kube.Reconcile) (*kube.Manager, <-chan error) {
	s.Helper()
	return s.managerAs(lab.RESTConfig(), options, reconcile)
}

// managerAs is managerWith for a user with fewer rights.
func (s *scene) managerAs(config *rest.Config, options kube.Options, reconcile kube.Reconcile) (*kube.Manager, <-chan error) {
	s.Helper()
	if reconcile == nil {
		reconcile = func(context.Context, nodepool.ClusterKey, bool) time.Duration { return 0 }
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if options.Single == nil && options.Namespaces == nil {
		options.Namespaces = []string{s.namespace}
	}
	manager, err := kube.NewManager(config, options)
	must(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- manager.Start(ctx, reconcile)
	}()
	s.Cleanup(func() { cancel(); <-done })
	s.until("the caches to fill", manager.Ready)
	if !options.LeaderElection {
		s.until("the workers to run", manager.Leading)
	}
	return manager, ended
}

// read waits until the manager has the cluster in its cache.
func (s *scene) read(m *kube.Manager, name string) nodepool.Cluster {
	s.Helper()
	var cluster nodepool.Cluster
	s.until("RayCluster "+name+" in the cache", func() bool {
		var err error
		cluster, err = m.Cluster(s.Context(), s.key(name))
		return err == nil
	})
	return cluster
}

// targets computes a change, addressed to the version of the cluster that was read.
func (s *scene) targets(cluster nodepool.Cluster, launch map[string]int, leaving ...string) nodepool.Change {
	s.Helper()
	targets, _, err := nodepool.Targets(cluster, launch, leaving)
	if err != nil || len(targets) == 0 {
		s.Fatalf("targets %v, error %v", targets, err)
	}
	return nodepool.Change{Cluster: cluster.Key, UID: cluster.UID, Generation: cluster.Generation, Targets: targets}
}

// change makes a change, and returns the generation that it led to.
func (s *scene) change(m *kube.Manager, change nodepool.Change) int64 {
	s.Helper()
	generation, err := m.Apply(s.Context(), change)
	must(s, err)
	return generation
}

func finding(cluster nodepool.Cluster, code string) bool {
	for _, f := range cluster.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
