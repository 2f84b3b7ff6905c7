//go:build !race

// Under the race detector, the runtime of Go 1.26.8 crashes in (*timer).maybeRunChan where client-go's leader election
// waits for a timer in a bubble of testing/synctest. test/simulated and `make nightly NAME=shards` run real processes.

package kube

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// leaseServer is an API server with Leases: it compares versions, as the real one does.
type leaseServer struct {
	mu      sync.Mutex
	version int
	leases  map[string]coordinationv1.Lease
	down    bool
	refused string // a verb without a right
}

var leaseKind = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// connection is one shard's, which can be cut: before calls reach the server, or before their answers come back.
type connection struct {
	coordinationv1client.LeaseInterface
	*leaseServer
	cut, deaf bool
}

func (c *connection) Leases(string) coordinationv1client.LeaseInterface { return c }

// do runs a call as the server does.
func (c *connection) do(ctx context.Context, verb string, call func() error) error {
	c.mu.Lock()
	refused, lost, deaf := c.refused == verb, c.cut || c.down, c.deaf
	var err error
	if !refused && !lost {
		err = call()
	}
	c.mu.Unlock()
	switch {
	case refused:
		return apierrors.NewForbidden(leaseKind, "", nil)
	case lost || deaf:
		ctx, cancel := context.WithTimeout(ctx, renewDeadline/2) // as leaseClient bounds calls
		defer cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (c *connection) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	stored := *l.DeepCopy()
	c.version++
	stored.ResourceVersion, stored.CreationTimestamp = strconv.Itoa(c.version), metav1.Now()
	if before, known := c.leases[l.Name]; known {
		stored.CreationTimestamp = before.CreationTimestamp
	}
	c.leases[l.Name] = stored
	return stored.DeepCopy()
}

func (c *connection) Create(
	ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions,
) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "create", func() error {
		if _, exists := c.leases[l.Name]; exists {
			return apierrors.NewAlreadyExists(leaseKind, l.Name)
		}
		stored = c.put(l)
		return nil
	})
}

func (c *connection) Update(
	ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions,
) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "update", func() error {
		switch before, exists := c.leases[l.Name]; {
		case !exists:
			return apierrors.NewNotFound(leaseKind, l.Name)
		case before.ResourceVersion != l.ResourceVersion:
			return apierrors.NewConflict(leaseKind, l.Name, errors.New("changed"))
		}
		stored = c.put(l)
		return nil
	})
}

func (c *connection) Apply(
	ctx context.Context, l *applyv1.LeaseApplyConfiguration, _ metav1.ApplyOptions,
) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "patch", func() error {
		stored = c.put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: *l.Name, Labels: l.Labels},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: l.Spec.HolderIdentity}})
		return nil
	})
}

func (c *connection) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.do(ctx, "delete", func() error {
		wanted := options.Preconditions
		if wanted != nil && c.leases[name].ResourceVersion != *wanted.ResourceVersion {
			return apierrors.NewConflict(leaseKind, name, errors.New("changed"))
		}
		delete(c.leases, name)
		return nil
	})
}

func (c *connection) Get(ctx context.Context, name string, _ metav1.GetOptions) (l *coordinationv1.Lease, err error) {
	return l, c.do(ctx, "get", func() error {
		known, exists := c.leases[name]
		if !exists {
			return apierrors.NewNotFound(leaseKind, name)
		}
		l = known.DeepCopy()
		return nil
	})
}

func (c *connection) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	return list, c.do(ctx, "list", func() error {
		for _, l := range c.leases {
			if ShardsLabel+"="+l.Labels[ShardsLabel] == options.LabelSelector {
				list.Items = append(list.Items, *l.DeepCopy())
			}
		}
		return nil
	})
}

// shardFleet is some shards on one server.
type shardFleet struct {
	*testing.T
	server      *leaseServer
	shards      []*Shards
	connections []*connection
	stop        []context.CancelFunc
	keys        []nodepool.ClusterKey
	running     sync.WaitGroup
}

// divided runs a test with some RayClusters and no shards, in which time passes at once.
func divided(t *testing.T, clusters int, test func(*shardFleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &shardFleet{T: t, server: &leaseServer{leases: map[string]coordinationv1.Lease{}}}
		for i := range clusters {
			f.keys = append(f.keys, nodepool.ClusterKey{Namespace: "ml", Name: "c" + strconv.Itoa(i)})
		}
		defer func() {
			for _, stop := range f.stop {
				stop()
			}
			f.running.Wait()
			time.Sleep(2 * leaseDuration) // for elections that are cut off
		}()
		test(f)
	})
}

// join starts shards.
func (f *shardFleet) join(n int) {
	for range n {
		c := &connection{leaseServer: f.server}
		s := newShards(c, Options{LeaseNamespace: "heliostat", LeaseName: "heliostat", Address: "10.0.0.1:8090",
			Logger: slog.New(slog.DiscardHandler)})
		s.keys = func() ([]nodepool.ClusterKey, error) { return f.keys, nil }
		s.changed = func(nodepool.ClusterKey) {}
		ctx, stop := context.WithCancel(f.Context())
		f.shards, f.connections, f.stop = append(f.shards, s), append(f.connections, c), append(f.stop, stop)
		f.running.Go(func() { s.Start(ctx) })
	}
}

// lead gives a leader of the form without shards its Lease.
func (f *shardFleet) lead() {
	holder := "pod-1"
	_, err := (&connection{leaseServer: f.server}).Create(f.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "heliostat"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}, metav1.CreateOptions{})
	must(f, err)
}

// set changes the server or a connection.
func (f *shardFleet) set(change func()) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	change()
}

// writers returns how many shards may write to each RayCluster.
func (f *shardFleet) writers() (counts []int) {
	for _, key := range f.keys {
		n := 0
		for _, s := range f.shards {
			if s.Left(key) > 0 {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

// eachHas checks how many writers RayClusters have.
func (f *shardFleet) eachHas(want int, when string) {
	f.Helper()
	if counts := f.writers(); slices.ContainsFunc(counts, func(n int) bool { return n != want }) {
		f.Fatalf("%s: writers of each RayCluster are %v, want %d", when, counts, want)
	}
}

// watch checks for a while that no RayCluster has two writers.
func (f *shardFleet) watch(d time.Duration) {
	f.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		if counts := f.writers(); slices.Max(counts) > 1 {
			f.Fatalf("writers of each RayCluster are %v", counts)
		}
	}
}

// owned returns the RayClusters of a shard.
func (f *shardFleet) owned(shard int) (keys []nodepool.ClusterKey) {
	for _, key := range f.keys {
		if f.shards[shard].Owns(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// sharesAre checks how many slots each shard has.
func (f *shardFleet) sharesAre(when string, want ...int) {
	f.Helper()
	var got []int
	for _, s := range f.shards {
		s.mu.Lock()
		n := 0
		for i := range s.slots {
			if s.slots[i].mine {
				n++
			}
		}
		s.mu.Unlock()
		got = append(got, n)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.Errorf("%s: shards have %v slots, want %v", when, got, want)
	}
}

func TestShardsDivideRayClustersWhileTheyComeAndGo(t *testing.T) {
	divided(t, 60, func(f *shardFleet) {
		f.join(1)
		f.watch(time.Second)
		f.eachHas(1, "one shard")
		before := f.owned(0)
		f.join(1)
		f.watch(4 * time.Second)
		f.eachHas(1, "two shards")
		f.sharesAre("two shards", 6, 6)
		if kept := f.owned(0); slices.ContainsFunc(kept, func(k nodepool.ClusterKey) bool { return !slices.Contains(before, k) }) {
			t.Errorf("the first shard has got others: %v", kept)
		}
		f.join(3)
		f.watch(5 * time.Second)
		f.eachHas(1, "five shards")
		f.sharesAre("five shards", 2, 2, 2, 3, 3)
		f.stop[1]()
		f.watch(3 * time.Second)
		f.eachHas(1, "one has left")
		f.sharesAre("one has left", 0, 3, 3, 3, 3)
		n := 0
		f.set(func() { n = len(f.server.leases) })
		if n != slots+4 {
			t.Errorf("%d Leases, want those of the slots and of the four that stay", n)
		}
		if addresses, complete := f.shards[0].Addresses(); len(addresses) != 3 || complete {
			t.Errorf("right after a move, the others are %v, and lists are complete: %v", addresses, complete)
		}
		f.watch(3 * time.Second)
		if _, complete := f.shards[0].Addresses(); !complete {
			t.Error("lists are not complete though nothing moves")
		}
		for _, key := range f.keys {
			address, mine, known := f.shards[0].Route(key)
			if mine != f.shards[0].Owns(key) || !known || !mine && address != "10.0.0.1:8090" {
				t.Errorf("%s is at %q, own: %v, known: %v", key, address, mine, known)
			}
		}
	})
}

func TestWhatAShardHadThatIsCutOffMovesWithinTheLeaseAndASecondOfWork(t *testing.T) {
	divided(t, 60, func(f *shardFleet) {
		f.join(3)
		f.watch(5 * time.Second)
		f.eachHas(1, "three shards")
		f.set(func() { f.connections[2].cut = true })
		f.watch(5500 * time.Millisecond)
		if _, _, unowned, _ := f.shards[0].View(); unowned != 0 {
			t.Errorf("before its Leases have expired, %d RayClusters are without a shard", unowned)
		}
		f.watch(4 * time.Second)
		f.eachHas(1, "one is cut off")
		if f.shards[2].Acts() {
			t.Error("the one that is cut off may still write")
		}
		f.set(func() { f.connections[2].cut = false })
		f.watch(7 * time.Second)
		f.eachHas(1, "it is back")
		f.sharesAre("it is back", 4, 4, 4)
	})
}

func TestNobodyWritesWhileTheAPIServerIsAwayAndAllKeepWhatTheyHad(t *testing.T) {
	divided(t, 60, func(f *shardFleet) {
		f.join(3)
		f.watch(5 * time.Second)
		terms := f.terms()
		for range 8 {
			f.set(func() { f.server.down = true })
			f.watch(20 * time.Second)
			f.eachHas(0, "without an API server")
			f.set(func() { f.server.down = false })
			f.watch(6 * time.Second)
			f.eachHas(1, "it is back")
		}
		if after := f.terms(); !slices.Equal(terms, after) {
			t.Errorf("terms were %v, and are %v though nobody could have taken anything", terms, after)
		}
	})
}

// terms returns the term that each RayCluster's writer would write.
func (f *shardFleet) terms() (terms []string) {
	for _, key := range f.keys {
		for _, s := range f.shards {
			if s.Left(key) > 0 {
				term, err := s.Fence(key, "")
				must(f, err)
				terms = append(terms, term)
			}
		}
	}
	return terms
}

func TestACycleThatRunsKeepsItsSlotUntilItEnds(t *testing.T) {
	divided(t, 60, func(f *shardFleet) {
		f.join(1)
		f.watch(time.Second)
		ended := map[nodepool.ClusterKey]func() bool{}
		for _, key := range f.keys {
			ctx, leave, mine := f.shards[0].Enter(f.Context(), key)
			if !mine {
				t.Fatalf("%s belongs to nobody", key)
			}
			ended[key] = func() bool {
				defer leave()
				return ctx.Err() != nil
			}
		}
		f.join(1)
		f.watch(10 * time.Second)
		if n := len(f.owned(1)); n != 0 {
			t.Errorf("the second shard took %d RayClusters while the first was in their cycles", n)
		}
		canceled := 0
		for _, end := range ended {
			if end() {
				canceled++
			}
		}
		f.watch(3 * time.Second)
		f.eachHas(1, "the cycles have ended")
		if n := len(f.owned(1)); n != canceled || n == 0 {
			t.Errorf("the second shard has %d RayClusters, and %d cycles were canceled for it", n, canceled)
		}
	})
}

func TestACycleEndsWithTheRightToWriteAndAnotherFollows(t *testing.T) {
	divided(t, 1, func(f *shardFleet) {
		f.join(1)
		f.watch(time.Second)
		s, again := f.shards[0], false
		ctx, leave, _ := s.Enter(f.Context(), f.keys[0])
		f.watch(5 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("it ended while the shard renewed")
		}
		s.mu.Lock()
		s.changed = func(nodepool.ClusterKey) { again = true }
		s.mu.Unlock()
		f.set(func() { f.connections[0].cut = true })
		f.watch(5 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ctx.Err() == nil || !again {
			t.Errorf("without renewals the cycle goes on (%v), or none follows (%v)", ctx.Err() == nil, again)
		}
		go leave()
	})
}

func TestNoShardTakesWhatALeaderHas(t *testing.T) {
	divided(t, 30, func(f *shardFleet) {
		f.lead()
		f.join(2)
		f.watch(5 * time.Second)
		f.eachHas(0, "beside a leader")
		f.watch(4 * time.Second)
		f.eachHas(1, "the leader has ended")
	})
}

// TestAShardActsWhenAReadingAfterItsLeaseShowsNoLeader has a leader that gets its Lease while a shard gets one.
func TestAShardActsWhenAReadingAfterItsLeaseShowsNoLeader(t *testing.T) {
	divided(t, 1, func(f *shardFleet) {
		s := newShards(&connection{leaseServer: f.server}, Options{LeaseNamespace: "heliostat", LeaseName: "heliostat",
			Logger: slog.New(slog.DiscardHandler)})
		slot := s.slotOf(f.keys[0])
		acts := func(when string, want bool) {
			t.Helper()
			asked := time.Now()
			must(t, s.read(f.Context()))
			s.confirm(asked)
			if slot.acts() != want {
				t.Errorf("%s: acts is %v", when, !want)
			}
			time.Sleep(time.Second)
		}
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: s.identity}
		early := time.Now()
		acts("without a Lease", false)
		must(t, slot.lease.Create(f.Context(), mine))
		s.confirm(early)
		if slot.acts() {
			t.Error("it acts by a reading from before it got the Lease")
		}
		f.lead()
		acts("beside a leader", false)
		f.set(func() { delete(f.server.leases, "heliostat") })
		must(t, slot.lease.Update(f.Context(), mine))
		acts("the leader has gone", true)
		f.lead()
		acts("a leader comes, which waits", true)
		f.set(func() { delete(f.server.leases, slot.lease.Describe()[len("heliostat/"):]) })
		must(t, slot.lease.Create(f.Context(), mine))
		acts("somebody has removed its Lease, and the leader may not wait any more", false)
	})
}

func TestALeaderWaitsUntilNoShardMayWrite(t *testing.T) {
	divided(t, 30, func(f *shardFleet) {
		f.join(2)
		f.watch(5 * time.Second)
		f.eachHas(1, "two shards")
		f.lead()
		leads := make(chan struct{})
		go func() {
			newShards(&connection{leaseServer: f.server}, f.shards[0].options).awaitEnd(f.Context())
			close(leads)
		}()
		f.stop[1]() // it leaves; the other one is cut off
		f.set(func() { f.connections[0].cut = true })
		began := time.Now()
		<-leads
		f.eachHas(0, "when the leader begins")
		if took := time.Since(began); took < renewDeadline || took > leaseDuration+2*time.Second {
			t.Errorf("the leader has waited %v, want about the 6 s of a Lease", took)
		}
		f.set(func() { f.connections[0].cut = false })
		for range 20 { // the one that comes back sees the leader, and leaves all to it
			time.Sleep(200 * time.Millisecond)
			f.eachHas(0, "beside the leader")
			f.set(func() { // it renews
				l := f.server.leases["heliostat"]
				(&connection{leaseServer: f.server}).put(&l)
			})
		}
	})
}

func TestALeaderWithoutTheRightToListDoesNotWait(t *testing.T) {
	server := &leaseServer{refused: "list"}
	newShards(&connection{leaseServer: server}, Options{LeaseName: "heliostat",
		Logger: slog.New(slog.DiscardHandler)}).awaitEnd(t.Context())
}

func TestANewRayClusterDoesNotWaitForTheNextReading(t *testing.T) {
	divided(t, 3, func(f *shardFleet) {
		f.join(1)
		f.watch(2 * time.Second)
		key := nodepool.ClusterKey{Namespace: "ml", Name: "new"}
		_, leave, mine := f.shards[0].Enter(f.Context(), key)
		if !mine || f.shards[0].Left(key) == 0 {
			t.Fatal("the owner of a new RayCluster does not know it")
		}
		leave()
	})
}

func TestAReadingOfLeasesThatFailsGetsOld(t *testing.T) {
	divided(t, 60, func(f *shardFleet) {
		f.join(1)
		f.watch(5 * time.Second)
		if started, n, unowned, age := f.shards[0].View(); !started || n != 1 || unowned != 0 || age > 2*time.Second {
			t.Errorf("started %v, %d shards, %d without a shard, read %v ago", started, n, unowned, age)
		}
		f.set(func() { f.server.refused = "list" })
		f.watch(90 * time.Second)
		if _, _, _, age := f.shards[0].View(); age < 88*time.Second {
			t.Errorf("without lists for 90 s, it has read %v ago", age)
		}
	})
}

func TestATermThatFindsAnotherWritesNoMoreUntilAReadingConfirmsTheSlot(t *testing.T) {
	divided(t, 1, func(f *shardFleet) {
		f.join(1)
		f.watch(2 * time.Second)
		s, key := f.shards[0], f.keys[0]
		finds := func(stored, want string) {
			t.Helper()
			term, err := s.Fence(key, stored)
			if term != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, nodepool.ErrNotLeading) {
				t.Errorf("stored %q: term %q, %v, want %q", stored, term, err, want)
			}
		}
		first, second := s.ID()+".1", s.ID()+".2"
		finds("b.2", first)
		finds("b.2", first) // the first patch may still be on its way
		finds(first, first)
		finds("c.1", "")
		finds(first, "") // lost for good
		if s.Left(key) > 0 {
			t.Error("it may still write beside patches")
		}
		f.watch(2 * time.Second)
		finds("c.1", second)
		finds("c.2", "") // also where the cache lagged, and no patch was stored
	})
}

// TestNoTwoShardsWriteWhateverHappens lets faults happen at random: calls and answers are lost, the API server is away,
// shards come and go, and cycles take long.
func TestNoTwoShardsWriteWhateverHappens(t *testing.T) {
	for seed := range uint64(30) {
		divided(t, 24, func(f *shardFleet) {
			random := rand.New(rand.NewPCG(seed, 8))
			f.join(3)
			for range 40 {
				i := random.IntN(len(f.shards))
				switch random.IntN(6) {
				case 0:
					f.set(func() { f.connections[i].cut = !f.connections[i].cut })
				case 1:
					f.set(func() { f.connections[i].deaf = !f.connections[i].deaf })
				case 2:
					f.set(func() { f.server.down = !f.server.down })
				case 3:
					f.stop[i]()
				case 4:
					if len(f.shards) < 8 {
						f.join(1)
					}
				case 5:
					if _, leave, mine := f.shards[i].Enter(f.Context(), f.keys[random.IntN(len(f.keys))]); mine {
						time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, leave)
					}
				}
				f.watch(time.Duration(random.IntN(3000)) * time.Millisecond)
			}
			f.set(func() {
				f.server.down = false
				for _, c := range f.connections {
					c.cut, c.deaf = false, false
				}
			})
			f.join(1)
			f.watch(20 * time.Second)
			f.eachHas(1, "faults have stopped")
		})
	}
}
