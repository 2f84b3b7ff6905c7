package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/watch"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/test/rig"
)

// sharded is a control plane with RayClusters, and members that write to all of them all the time.
type sharded struct {
	*lab
	members []*member
	// histories are the terms of the writers of each RayCluster, as the watch shows them. Guarded by mu.
	mu        sync.Mutex
	histories map[string][]string
	written   map[string]time.Time
}

// member is one process, but for its memory.
type member struct {
	*kube.Manager
	cut  atomic.Bool
	stop func()
}

// clusters is how many RayClusters there are.
const clusters = 30

func TestShardsOnARealAPIServerNeverWriteInTurns(t *testing.T) {
	t.Parallel()
	rig.Quiet()
	s := &sharded{lab: &lab{T: t, namespace: "ml"}, histories: map[string][]string{}, written: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	s.Rig, err = rig.Start(ctx, rig.Options{Out: os.Stderr, ControlPlaneOnly: true})
	s.must(err)
	t.Cleanup(func() { s.must(s.Stop(context.Background())) })
	for i := range clusters {
		cluster := rig.Cluster{Namespace: s.namespace, Name: fmt.Sprint("c", i), Groups: []rig.Group{{Name: "cpu", Max: 1_000_000}}}
		s.must(s.Create(ctx, cluster.Manifest()))
	}
	s.watch(ctx)
	for range 3 {
		s.join()
	}
	s.allWritten("three members")
	for range 2 {
		victim := s.members[0]
		victim.cut.Store(true)
		took := s.allWritten("one is cut off")
		if victim.Leading() {
			t.Error("the one that is cut off may still write")
		}
		victim.cut.Store(false)
		back := s.allWritten("it is back")
		s.members[1].stop() // it leaves, and another joins
		s.members = slices.Delete(s.members, 1, 2)
		left := s.allWritten("one has left")
		s.join()
		joined := s.allWritten("one has joined")
		t.Logf("every RayCluster was written again after a cut in %v, a return in %v, a leave in %v, a join in %v",
			took, back, left, joined)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	moves := 0
	for _, history := range s.histories {
		moves += len(history) - 1
	}
	t.Logf("%d RayClusters moved %d times", clusters, moves)
	if moves < clusters {
		t.Errorf("%d RayClusters moved only %d times", clusters, moves)
	}
}

// join starts a member.
func (s *sharded) join() {
	s.Helper()
	m := &member{}
	config := rest.CopyConfig(s.Cluster.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttable{next, &m.cut} })
	manager, err := kube.NewManager(config, kube.Options{
		Sharded: true, LeaseNamespace: "default", LeaseName: "heliostat", Namespaces: []string{s.namespace},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	s.must(err)
	m.Manager = manager
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx, m.grow(s.lab)) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		s.must(<-ended)
	})
	s.Cleanup(m.stop)
	s.members = append(s.members, m)
}

// grow returns cycles that each raise the replicas of a RayCluster by one.
func (m *member) grow(l *lab) kube.Reconcile {
	return func(ctx context.Context, key nodepool.ClusterKey, _ bool) time.Duration {
		cluster, err := m.Cluster(ctx, key)
		if err != nil {
			return time.Second
		}
		targets, _, err := nodepool.Targets(cluster, map[string]int{"cpu": 1}, nil)
		if err == nil {
			_, err = m.Apply(ctx, nodepool.Change{Cluster: key, UID: cluster.UID, Targets: targets})
		}
		if errors.Is(err, nodepool.ErrReadOnly) {
			l.Errorf("%s: %v", key, err)
		}
		return 300 * time.Millisecond
	}
}

// cuttable fails all calls of a member that is cut off, and loses the answers of those under way.
type cuttable struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

var errCut = errors.New("cut off")

func (c cuttable) RoundTrip(request *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	response, err := c.next.RoundTrip(request)
	if err == nil && c.cut.Load() {
		_ = response.Body.Close()
		return nil, errCut
	}
	return response, err
}

// watch records who wrote each version of each RayCluster.
func (s *sharded) watch(ctx context.Context) {
	s.Helper()
	client := s.Dynamic.Resource(rig.RayClusters).Namespace(s.namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	s.must(err)
	// The API server may end a watch at any time; it goes on at the version where it ended, so that no write is missed.
	changes, err := watch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	s.must(err)
	go func() {
		for change := range changes.ResultChan() {
			object, is := change.Object.(*unstructured.Unstructured)
			if !is {
				s.Errorf("the watch has failed: %v", change.Object)
				continue
			}
			s.wrote(object.GetName(), object.GetAnnotations()[decode.ShardAnnotation])
		}
	}()
}

func (s *sharded) wrote(name, term string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term == "" {
		s.Errorf("%s was written without a term", name)
		return
	}
	history := s.histories[name]
	s.written[name] = time.Now()
	switch at := slices.Index(history, term); {
	case at < 0:
		s.histories[name] = append(history, term)
	case at != len(history)-1:
		s.Errorf("%s: %s writes after %v", name, term, history)
	}
}

// allWritten waits until every RayCluster was written since a moment a little from now, and the members that are not cut
// off, and only those, were the last writers of some. It returns how long that took. No bound is asserted on it: a member
// that was kept from reading for 3 s counts the Leases of others as just seen.
func (s *sharded) allWritten(when string) time.Duration {
	s.Helper()
	begin := time.Now()
	for {
		time.Sleep(50 * time.Millisecond)
		missing, owners := s.writtenSince(begin.Add(time.Second))
		wrong := slices.DeleteFunc(slices.Clone(s.members), func(m *member) bool {
			return owners[m.Shards().ID()] > 0 == !m.cut.Load()
		})
		took := time.Since(begin)
		if missing+len(wrong) == 0 {
			return took.Round(100 * time.Millisecond)
		}
		if took > patience {
			for _, m := range s.members {
				_, others, unowned, age := m.Shards().View()
				s.Logf("%s, cut off: %v, may write: %v, knows %d shards and %d RayClusters without one, read %v ago",
					m.Shards().ID(), m.cut.Load(), m.Leading(), others, unowned, age)
			}
			s.Fatalf("%s: after %v, %d RayClusters are not written, and the last writers are %v", when, patience, missing, owners)
		}
	}
}

// writtenSince counts the RayClusters that were not written since a moment, and those that each member wrote last.
func (s *sharded) writtenSince(moment time.Time) (missing int, owners map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, owners = clusters-len(s.written), map[string]int{}
	for name, at := range s.written {
		if at.Before(moment) {
			missing++
		}
		history := s.histories[name]
		owner, _, _ := strings.Cut(history[len(history)-1], ".")
		owners[owner]++
	}
	return missing, owners
}
