package kueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
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

// slowServer takes a second for each read of an owner.
type slowServer struct {
	metadata.Getter
	// fail has reads end with an error.
	fail             atomic.Bool
	reads, now, most atomic.Int64
}

func (s *slowServer) Resource(schema.GroupVersionResource) metadata.Getter { return s }

func (s *slowServer) Namespace(string) metadata.ResourceInterface { return s }

func (s *slowServer) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (
	*metav1.PartialObjectMetadata, error) {
	s.reads.Add(1)
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	if !reflector.Sleep(ctx, time.Second) {
		return nil, ctx.Err()
	}
	if s.fail.Load() {
		return nil, errors.New("503")
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, nil
}

// beside runs a test beside the reads of owners from a slow server.
func beside(t *testing.T, test func(s *slowServer, p *Owners)) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowServer{}
		test(s, NewOwners(s, nil, kinds(), slog.New(slog.DiscardHandler), func(nodepool.ClusterKey) {}))
	})
}

// ownedBy looks at a RayCluster of an owner, as a cycle does, and reports whether the owner is known.
func ownedBy(p *Owners, cluster, owner string) bool {
	c := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: cluster}}
	p.AddTo(&c, decode.Ownership{Controller: decode.Controller{
		APIVersion: "ray.io/v1", Kind: "RayJob", Name: owner, UID: owner}})
	return c.Queue.Unknown == ""
}

func TestOwnersAreReadAFewAtATime(t *testing.T) {
	beside(t, func(s *slowServer, p *Owners) {
		known := func(owners ...string) (count int) {
			for _, owner := range owners {
				if ownedBy(p, owner, owner) {
					count++
				}
			}
			synctest.Wait()
			return count
		}
		var jobs []string
		for i := range 20 * ownerReaders {
			jobs = append(jobs, fmt.Sprint("job-", i))
		}
		known(jobs...)
		time.Sleep(21 * time.Second)
		if n := known(jobs...); n != len(jobs) || s.reads.Load() != int64(n) || s.most.Load() != ownerReaders {
			t.Errorf("%d are known after %d reads, %d at the same time", n, s.reads.Load(), s.most.Load())
		}
		time.Sleep(2 * answersLast)
		if n := known(jobs...); n != len(jobs) {
			t.Errorf("%d are known, want all: an old answer counts until there is another", n)
		}
		time.Sleep(21 * time.Second)
		known("gone")
		time.Sleep(time.Second)
		p.Drop(nodepool.ClusterKey{Namespace: "ml", Name: "gone"})
		time.Sleep(time.Minute)
		p.mu.Lock()
		if len(p.answers) != len(jobs) {
			t.Errorf("%d answers are left", len(p.answers))
		}
		p.mu.Unlock()
	})
}

// A RayCluster that goes, or that another owner takes, during a reading is read again when it is there.
func TestNoReadingIsLostBetweenTwoOwners(t *testing.T) {
	beside(t, func(s *slowServer, p *Owners) {
		key := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
		look := func(owner string) bool { return ownedBy(p, key.Name, owner) }
		look("first")
		time.Sleep(500 * time.Millisecond)
		look("second") // while the first is read; nothing looks after that
		time.Sleep(time.Minute)
		if !look("second") {
			t.Error("the new owner was not read")
		}
		p.Drop(key)
		s.fail.Store(true)
		look("third")
		time.Sleep(2 * time.Second)
		p.Drop(key) // after a reading that failed
		s.fail.Store(false)
		time.Sleep(time.Minute)
		look("third")
		time.Sleep(time.Minute)
		if !look("third") {
			t.Error("the owner of the RayCluster that was made again was not read")
		}
	})
}
