package kueue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// slowServer takes a second for each read of an owner. Owners whose name begins with hung, and the resources of
// such API versions, are never read.
type slowServer struct {
	metadata.Getter

	mu sync.Mutex
	// Guarded by mu: the reads of owners in order, how many run and ran at most at the same time, and how often
	// resources were listed.
	reads     []slowRead
	now, most int
	lists     int
}

type slowRead struct {
	owner string
	begun time.Time
}

func (s *slowServer) Resource(schema.GroupVersionResource) metadata.Getter { return s }

func (s *slowServer) Namespace(string) metadata.ResourceInterface { return s }

func (s *slowServer) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (
	*metav1.PartialObjectMetadata, error) {
	s.mu.Lock()
	s.reads = append(s.reads, slowRead{name, time.Now()})
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	takes := time.Second
	if strings.HasPrefix(name, "hung") {
		takes = time.Hour
	}
	answered := reflector.Sleep(ctx, takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if !answered {
		return nil, ctx.Err()
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, nil
}

func (s *slowServer) list(ctx context.Context, version string) (*metav1.APIResourceList, error) {
	s.mu.Lock()
	s.lists++
	s.mu.Unlock()
	if strings.HasPrefix(version, "hung") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return served(ctx, version)
}

// taken returns the reads so far, and forgets them.
func (s *slowServer) taken() (reads []slowRead, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, most = s.reads, s.most
	s.reads, s.most = nil, s.now
	return reads, most
}

// inTurns runs a test beside parents that read from a slow server; time is synctest's. known looks at a RayCluster of
// an owner, as a cycle does, and reports whether it is known whether Kueue queues it.
func inTurns(t *testing.T, test func(t *testing.T, p *Owners, s *slowServer,
	known func(version, owner string) bool)) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{}
		p := NewOwners(server, nil, server.list, slog.New(slog.DiscardHandler), func(nodepool.ClusterKey) {})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		defer func() {
			stop()
			stopped := time.Now()
			if err := <-ended; err != nil || time.Since(stopped) > 0 {
				t.Errorf("ended with %v after %v", err, time.Since(stopped))
			}
		}()
		test(t, p, server, func(version, owner string) bool {
			cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: owner}}
			p.AddTo(&cluster, decode.Ownership{Controller: decode.Controller{
				APIVersion: version, Kind: "RayJob", Name: owner, UID: owner}})
			return cluster.Queue.Unknown == ""
		})
	})
}

const rayVersion = "ray.io/v1"

func names(prefix string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return all
}

// lookAt looks at RayClusters, and returns how many are known.
func lookAt(known func(version, owner string) bool, version string, owners []string) (count int) {
	for _, owner := range owners {
		if known(version, owner) {
			count++
		}
	}
	return count
}

func TestOwnersAreReadAFewAtATime(t *testing.T) {
	inTurns(t, func(t *testing.T, p *Owners, s *slowServer, known func(string, string) bool) {
		jobs := names("job-", 1000)
		begun := time.Now()
		for lookAt(known, rayVersion, jobs) < len(jobs) && time.Since(begun) < time.Hour {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if took := time.Since(begun); took > 126*time.Second {
			t.Errorf("1,000 readings of a second took %v, want an eighth of 1,000 s", took)
		}
		reads, most := s.taken()
		if most != firstReaders || len(reads) != len(jobs) {
			t.Errorf("%d reads, %d at the same time; want %d and %d", len(reads), most, len(jobs), firstReaders)
		}
		if len(p.pending)+len(p.backOffUntil) > 0 {
			t.Errorf("%d readings and %d pauses are left", len(p.pending), len(p.backOffUntil))
		}
	})
}

func TestARayClusterThatIsNewDoesNotWaitForOwnersThatAreKnown(t *testing.T) {
	inTurns(t, func(t *testing.T, _ *Owners, s *slowServer, known func(string, string) bool) {
		jobs := names("job-", 200)
		lookAt(known, rayVersion, jobs)
		time.Sleep(2 * answersLast)
		s.taken()
		if n := lookAt(known, rayVersion, jobs); n != len(jobs) {
			t.Errorf("%d are known, want all: an old answer counts until there is another", n)
		}
		time.Sleep(3500 * time.Millisecond)
		lookAt(known, rayVersion, []string{"new"})
		time.Sleep(1100 * time.Millisecond)
		if !known(rayVersion, "new") {
			t.Error("the new RayCluster is still unknown after the second that its reading takes")
		}
		if _, most := s.taken(); most != laterReaders+1 {
			t.Errorf("%d reads at the same time, want those of %d repeating readers and the new one", most, laterReaders)
		}
		time.Sleep(time.Minute)
		if reads, _ := s.taken(); len(reads) < 150 {
			t.Errorf("%d owners were read again, want all", len(reads))
		}
	})
}

func TestAnotherOwnerDoesNotWaitForTheOneBefore(t *testing.T) {
	inTurns(t, func(t *testing.T, p *Owners, _ *slowServer, _ func(string, string) bool) {
		key := nodepool.ClusterKey{Namespace: "ml", Name: "moved"}
		of := func(name string) decode.Ownership {
			return decode.Ownership{Controller: decode.Controller{APIVersion: rayVersion, Kind: "RayJob", Name: name, UID: name}}
		}
		p.known(key, of("hung"))
		synctest.Wait()
		p.known(key, of("job"))
		time.Sleep(1100 * time.Millisecond)
		if got := p.known(key, of("job")); got.of.Name != "job" {
			t.Errorf("the answer is about %q while a reading of the owner before hangs", got.of.Name)
		}
	})
}

func TestOwnersThatDoNotAnswerDoNotHoldUpOthers(t *testing.T) {
	inTurns(t, func(t *testing.T, _ *Owners, _ *slowServer, known func(string, string) bool) {
		hung, jobs := names("hung-", 6), names("job-", 10)
		lookAt(known, rayVersion, hung)
		lookAt(known, rayVersion, jobs)
		time.Sleep(5100 * time.Millisecond)
		if n := lookAt(known, rayVersion, jobs); n != len(jobs) {
			t.Errorf("%d of %d are known after 5 s beside owners that do not answer", n, len(jobs))
		}
		hung = names("hung-", 100)
		for range 600 {
			lookAt(known, rayVersion, hung)
			time.Sleep(200 * time.Millisecond)
		}
		lookAt(known, rayVersion, []string{"new"})
		time.Sleep(1100 * time.Millisecond)
		if !known(rayVersion, "new") {
			t.Error("a new RayCluster waits for owners that have not answered before")
		}
	})
}

func TestDiscoveryThatDoesNotAnswerHoldsUpNothing(t *testing.T) {
	inTurns(t, func(t *testing.T, p *Owners, s *slowServer, known func(string, string) bool) {
		lookAt(known, "hung.io/v1", names("tenant-", 100))
		lookAt(known, rayVersion, []string{"job"})
		time.Sleep(reflector.RequestTimeout + 1100*time.Millisecond)
		if !known(rayVersion, "job") {
			t.Errorf("a RayJob waits for more than %v", reflector.RequestTimeout)
		}
		synctest.Wait()
		if s.lists > firstReaders+1 {
			t.Errorf("resources were listed %d times, want once by each reader, and those of the RayJob", s.lists)
		}
		if len(p.unlisted) != 1 || len(p.backOffUntil) != 100 {
			t.Errorf("%d API versions and %d RayClusters have a pause", len(p.unlisted), len(p.backOffUntil))
		}
		for i := range 20 {
			known(fmt.Sprintf("hung-%d.io/v1", i), "tenant-of-another")
			time.Sleep(20 * time.Second)
		}
		synctest.Wait()
		if len(p.unlisted) != 1 {
			t.Errorf("%d API versions are remembered, want the last one", len(p.unlisted))
		}
	})
}

func TestNothingIsRememberedOfARayClusterThatGoesWhileItsOwnerIsRead(t *testing.T) {
	inTurns(t, func(t *testing.T, p *Owners, _ *slowServer, known func(string, string) bool) {
		for _, owner := range []string{"job", "hung"} {
			lookAt(known, rayVersion, []string{owner})
			synctest.Wait()
			p.Drop(nodepool.ClusterKey{Namespace: "ml", Name: owner})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if len(p.answers)+len(p.pending)+len(p.backOffUntil) > 0 {
			t.Errorf("%d answers, %d readings and %d pauses are left", len(p.answers), len(p.pending), len(p.backOffUntil))
		}
	})
}
