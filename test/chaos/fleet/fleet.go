package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/rig"
)

// Fleet are RayClusters in one namespace, and the machines of their pods.
type Fleet struct {
	Namespace string
	Members   []*Member
	kube      kubernetes.Interface
	objects   dynamic.Interface
	see       func(verdict.Fact)
	kubelet   *kubelet
	stop      context.CancelFunc
	tasks     sync.WaitGroup
	// restored is when the storage went back, in Unix nanoseconds.
	restored atomic.Int64

	mu sync.Mutex // guards the fields below
	// running lasts as long as the fleet. endEra ends what reads the storage until it goes back.
	running context.Context
	endEra  context.CancelFunc
}

// ShadowMembers is how many of the members of each fleet are in shadow mode. They are the last ones.
const ShadowMembers = 1

// Name returns the name of a RayCluster of a fleet.
func Name(i int) string { return fmt.Sprintf("ray-%02d", i) }

// Shadows returns the names of the RayClusters in shadow mode.
func Shadows(size int) []string {
	var names []string
	for i := size - ShadowMembers; i < size; i++ {
		names = append(names, Name(i))
	}
	return names
}

// Start makes a fleet. Each head listens at an address of its own in a network, which is the begin of an address, such
// as 127.66.3. The functions of see must not block, and may be called from several goroutines.
func Start(
	ctx context.Context, config Clients, namespace, network string, size int, see func(verdict.Fact),
) (*Fleet, error) {
	f := &Fleet{Namespace: namespace, kube: config.Kube, objects: config.Dynamic, see: see}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	for i := range size {
		m, err := newMember(Name(i), fmt.Sprintf("%s.%d", network, i+1), i >= size-ShadowMembers, see)
		if err != nil {
			return f, err
		}
		f.Members = append(f.Members, m)
	}
	if err := f.addMachines(ctx); err != nil {
		return f, err
	}
	f.watch(running)
	for _, m := range f.Members {
		if err := config.Create(ctx, m.manifest(namespace).Manifest()); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Clients are an administrator's clients, and a function that creates a RayCluster and its namespace.
type Clients struct {
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	Create  func(context.Context, *unstructured.Unstructured) error
}

// watch starts the kubelet and the observer of the RayClusters.
func (f *Fleet) watch(ctx context.Context) {
	f.kubelet = newKubelet(f)
	f.begin(ctx)
	f.tasks.Go(func() { f.kubelet.run(ctx) })
}

// begin begins an era: it reads all objects anew. A watch that continues from a version of a storage that has gone back
// is silent until the new history has reached that version, so nobody may continue one.
func (f *Fleet) begin(ctx context.Context) {
	era, end := context.WithCancel(ctx)
	f.mu.Lock()
	if f.endEra != nil {
		f.endEra()
	}
	f.running, f.endEra = ctx, end
	f.mu.Unlock()
	f.tasks.Go(func() { f.follow(era) })
	f.tasks.Go(func() {
		factory := informers.NewSharedInformerFactoryWithOptions(f.kube, 0, informers.WithNamespace(f.Namespace))
		read := &cache{factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()}
		factory.Start(era.Done())
		factory.WaitForCacheSync(era.Done())
		f.mu.Lock()
		defer f.mu.Unlock()
		if era.Err() == nil {
			f.kubelet.cache.Store(read)
		}
	})
}

// follow reports each state of the RayClusters, until the end of an era.
func (f *Fleet) follow(era context.Context) {
	clusters := f.objects.Resource(rig.RayClusters).Namespace(f.Namespace)
	for version := ""; era.Err() == nil; {
		w, err := clusters.Watch(era, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			version = ""
			pause(era, 200*time.Millisecond)
			continue
		}
		unwatch := context.AfterFunc(era, w.Stop)
		for event := range w.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				version = ""
				break
			}
			version = object.GetResourceVersion()
			if event.Type != watch.Deleted {
				f.seeIn(era, specOf(object))
			}
		}
		unwatch()
		w.Stop()
	}
}

// seeIn reports a fact of an era, unless the era has ended: what a storage that has gone back said is no longer true.
func (f *Fleet) seeIn(era context.Context, fact verdict.Fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if era.Err() == nil {
		f.see(fact)
	}
}

// Ready waits until every RayCluster has a running head pod.
func (f *Fleet) Ready(ctx context.Context) error {
	heads := labels.SelectorFromSet(labels.Set{"ray.io/node-type": "head"})
	for {
		ready := 0
		pods, err := f.kubelet.list(heads)
		for _, pod := range pods {
			if pod.Status.PodIP != "" {
				ready++
			}
		}
		if err == nil && ready == len(f.Members) {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for the heads: %d of %d run: %w", ready, len(f.Members), context.Cause(ctx))
		}
	}
}

// Restored says that the API server comes back with older storage. It is called while the API server is down, and ends
// the era. Rejoin begins the next one.
func (f *Fleet) Restored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endEra()
	f.kubelet.cache.Store(nil)
	f.restored.Store(time.Now().UnixNano())
	f.see(verdict.Restored{At: time.Now()})
}

// Rejoin lets the machines join the API server again after Restored: each kubelet registers its Node and reads its
// pods.
func (f *Fleet) Rejoin(ctx context.Context) error {
	f.mu.Lock()
	running := f.running
	f.mu.Unlock()
	f.begin(running)
	return f.addMachines(ctx)
}

// Stop removes the RayClusters, waits until their pods are gone, and ends the heads.
func (f *Fleet) Stop(ctx context.Context) error {
	clusters := f.objects.Resource(rig.RayClusters).Namespace(f.Namespace)
	err := clusters.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	for err == nil && f.kubelet != nil {
		pods, listed := f.kubelet.list(labels.Everything())
		if listed == nil && len(pods) == 0 {
			break
		}
		f.deletePods(ctx, pods)
		pause(ctx, 200*time.Millisecond)
		if ctx.Err() != nil {
			err = fmt.Errorf("waiting for the end of %d pods: %w", len(pods), context.Cause(ctx))
		}
	}
	f.stop()
	f.tasks.Wait()
	for _, m := range f.Members {
		m.Head.Close()
	}
	return errors.Join(err)
}

// deletePods deletes pods without a wait for the garbage collector, which may have just started. The next call tries
// again what fails.
func (f *Fleet) deletePods(ctx context.Context, pods []*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			_ = f.kube.CoreV1().Pods(f.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
