package shards

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// server is an API server with Leases: it compares versions, as the real one does.
type server struct {
	mu      sync.Mutex
	version int
	leases  map[string]coordinationv1.Lease
	down    bool
	refused string // a verb without a right
}

var leaseKind = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// client is one member's connection, which can be cut.
type client struct {
	coordinationv1client.LeaseInterface
	*server
	cut bool
}

func (c *client) Leases(string) coordinationv1client.LeaseInterface { return c }

func (c *client) begin(ctx context.Context, verb string) error {
	c.mu.Lock()
	if c.refused == verb {
		c.mu.Unlock()
		return apierrors.NewForbidden(leaseKind, "", nil)
	}
	if c.cut || c.down {
		c.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (c *client) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	stored := *l.DeepCopy()
	c.version++
	stored.ResourceVersion = strconv.Itoa(c.version)
	if before, known := c.leases[l.Name]; known {
		stored.CreationTimestamp = before.CreationTimestamp
	} else {
		stored.CreationTimestamp = metav1.Now()
	}
	c.leases[l.Name] = stored
	return &stored
}

func (c *client) Create(
	ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "create"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	if _, exists := c.leases[l.Name]; exists {
		return nil, apierrors.NewAlreadyExists(leaseKind, l.Name)
	}
	return c.put(l), nil
}

func (c *client) Update(
	ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "update"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	switch before, exists := c.leases[l.Name]; {
	case !exists:
		return nil, apierrors.NewNotFound(leaseKind, l.Name)
	case before.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(leaseKind, l.Name, errors.New("changed"))
	}
	return c.put(l), nil
}

func (c *client) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if err := c.begin(ctx, "delete"); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if c.leases[name].ResourceVersion != *options.Preconditions.ResourceVersion {
		return apierrors.NewConflict(leaseKind, name, errors.New("changed"))
	}
	delete(c.leases, name)
	return nil
}

func (c *client) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := c.begin(ctx, "get"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	if l, exists := c.leases[name]; exists {
		return &l, nil
	}
	return nil, apierrors.NewNotFound(leaseKind, name)
}

func (c *client) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	if err := c.begin(ctx, "list"); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	list := &coordinationv1.LeaseList{}
	for _, l := range c.leases {
		if GroupLabel+"="+l.Labels[GroupLabel] == options.LabelSelector {
			list.Items = append(list.Items, l)
		}
	}
	return list, nil
}

// fleet is some members on one server.
type fleet struct {
	*testing.T
	server  *server
	members []*Shards
	clients []*client
	stop    []context.CancelFunc
	keys    []nodepool.ClusterKey
	wg      sync.WaitGroup
}

func newFleet(t *testing.T, clusters int) *fleet {
	f := &fleet{T: t, server: &server{leases: map[string]coordinationv1.Lease{}}}
	for i := range clusters {
		f.keys = append(f.keys, nodepool.ClusterKey{Namespace: "ml", Name: "c" + strconv.Itoa(i)})
	}
	return f
}

// join starts members; change may change their configuration.
func (f *fleet) join(n int, change ...func(*Config)) {
	for range n {
		connection := &client{server: f.server}
		config := Config{
			Client: connection, Namespace: "heliostat", Group: "heliostat", Address: "10.0.0.1:8090",
			Timing: Timing{Lease: 6 * time.Second, Deadline: 4 * time.Second}, Retry: 800 * time.Millisecond,
			Clusters: func() ([]nodepool.ClusterKey, error) { return f.keys, nil },
			Changed:  func(nodepool.ClusterKey) {}, Logger: slog.New(slog.DiscardHandler),
		}
		for _, c := range change {
			c(&config)
		}
		member := New(config)
		ctx, stop := context.WithCancel(f.Context())
		f.members, f.clients, f.stop = append(f.members, member), append(f.clients, connection), append(f.stop, stop)
		f.wg.Go(func() { member.Start(ctx) })
	}
}

func (f *fleet) end() {
	for _, stop := range f.stop {
		stop()
	}
	f.wg.Wait()
}

// writers returns how many members may write to each RayCluster.
func (f *fleet) writers() (counts []int) {
	for _, key := range f.keys {
		n := 0
		for _, m := range f.members {
			if m.May(key) {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

func (f *fleet) eachHasOne(when string) {
	f.Helper()
	if counts := f.writers(); slices.ContainsFunc(counts, func(n int) bool { return n != 1 }) {
		f.Fatalf("%s: writers of each RayCluster are %v, want one", when, counts)
	}
}

// watch checks for a while that no RayCluster has two writers.
func (f *fleet) watch(d time.Duration) {
	f.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		if counts := f.writers(); slices.Max(counts) > 1 {
			f.Fatalf("writers of each RayCluster are %v", counts)
		}
	}
}

func TestMembersDivideRayClustersWhileTheyComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60)
		defer f.end()
		f.join(1)
		f.watch(time.Second)
		f.eachHasOne("one member")
		before := f.owned(0)
		f.join(1)
		f.watch(3 * time.Second)
		f.eachHasOne("two members")
		if kept := f.owned(0); len(kept) >= len(before) || len(kept) < 15 {
			t.Errorf("the first member has %d of 60 RayClusters", len(kept))
		}
		f.join(1)
		f.watch(3 * time.Second)
		f.eachHasOne("three members")
		f.stop[1]()
		f.watch(2 * time.Second)
		f.eachHasOne("one has left")
		if n := len(f.server.leases); n != 2 {
			t.Errorf("%d Leases, want those of the two that stay", n)
		}
	})
}

func (f *fleet) owned(member int) (keys []nodepool.ClusterKey) {
	for _, key := range f.keys {
		if f.members[member].Owns(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestWhatAMemberHadThatIsCutOffMovesWithinTheLeaseAndASecondOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60)
		defer f.end()
		f.join(3)
		f.watch(5 * time.Second)
		f.eachHasOne("three members")
		f.setCut(2, true)
		f.watch(9 * time.Second)
		f.eachHasOne("one is cut off")
		if n := len(f.owned(2)); f.members[2].Left() > 0 {
			t.Errorf("the one that is cut off may still write to %d RayClusters", n)
		}
		f.setCut(2, false)
		f.watch(6 * time.Second)
		f.eachHasOne("it is back")
		if len(f.owned(2)) == 0 {
			t.Error("the one that is back has nothing")
		}
	})
}

func (f *fleet) setCut(member int, cut bool) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.clients[member].cut = cut
}

func TestNobodyWritesWhileTheAPIServerIsAwayAndAllKeepWhatTheyHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60)
		defer f.end()
		f.join(3)
		f.watch(5 * time.Second)
		before := [][]nodepool.ClusterKey{f.owned(0), f.owned(1), f.owned(2)}
		terms := f.terms()
		f.server.set(true)
		f.watch(20 * time.Second)
		if counts := f.writers(); slices.Max(counts) != 0 {
			t.Fatalf("without an API server the writers are %v", counts)
		}
		f.server.set(false)
		f.watch(5 * time.Second)
		f.eachHasOne("it is back")
		for i := range before {
			if !slices.Equal(before[i], f.owned(i)) {
				t.Errorf("member %d had %d RayClusters and has others now", i, len(before[i]))
			}
		}
		if after := f.terms(); !slices.Equal(terms, after) {
			t.Error("terms changed though nobody could have taken anything")
		}
	})
}

// terms returns the term that each RayCluster's writer would write.
func (f *fleet) terms() (terms []string) {
	for _, key := range f.keys {
		for _, m := range f.members {
			if m.May(key) {
				term, err := m.Fence(key, "")
				if err != nil {
					f.Fatal(err)
				}
				terms = append(terms, term)
			}
		}
	}
	return terms
}

func (s *server) refuse(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = verb
}

func (s *server) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func TestACycleThatRunsKeepsItsRayClusterUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60)
		defer f.end()
		f.join(1)
		f.watch(time.Second)
		type running struct {
			ctx   context.Context
			leave func()
		}
		cycles := map[nodepool.ClusterKey]running{}
		for _, key := range f.keys {
			ctx, leave, mine := f.members[0].Enter(t.Context(), key)
			if !mine {
				t.Fatalf("%s belongs to nobody", key)
			}
			cycles[key] = running{ctx, leave}
		}
		f.join(1)
		f.watch(5 * time.Second)
		if n := len(f.owned(1)); n != 0 {
			t.Errorf("the second member took %d RayClusters while the first was in their cycles", n)
		}
		ended := 0
		for _, c := range cycles {
			if c.ctx.Err() != nil {
				ended++
			}
			c.leave()
		}
		if ended < 15 || ended > 45 {
			t.Errorf("%d of 60 cycles were canceled, want the second member's share", ended)
		}
		f.watch(3 * time.Second)
		f.eachHasOne("the cycles have ended")
		if n := len(f.owned(1)); n != ended {
			t.Errorf("the second member has %d RayClusters, and %d cycles were canceled for it", n, ended)
		}
	})
}

func TestACycleEndsWithTheRightToWriteAndAnotherFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var again sync.Map
		f := newFleet(t, 1)
		defer f.end()
		f.join(1, func(c *Config) { c.Changed = func(key nodepool.ClusterKey) { again.Store(key, true) } })
		f.watch(time.Second)
		ctx, leave, _ := f.members[0].Enter(t.Context(), f.keys[0])
		f.watch(5 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("it ended while the member renewed")
		}
		again.Clear()
		f.setCut(0, true)
		f.watch(5 * time.Second)
		if _, asked := again.Load(f.keys[0]); ctx.Err() == nil || !asked {
			t.Errorf("without renewals the cycle goes on (%v), or none follows (%v)", ctx.Err() == nil, asked)
		}
		leave()
	})
}

func TestNoShardTakesWhatALeaderHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30)
		defer f.end()
		holder := "pod-1"
		leader := &client{server: f.server}
		_, _ = leader.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "heliostat"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}, metav1.CreateOptions{})
		f.join(2)
		f.watch(5 * time.Second)
		if counts := f.writers(); slices.Max(counts) != 0 {
			t.Errorf("beside a leader the writers are %v", counts)
		}
		f.watch(4 * time.Second)
		f.eachHasOne("the leader has ended")
	})
}

func TestALeaderWaitsUntilNoShardMayWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30)
		defer f.end()
		f.join(2)
		f.watch(5 * time.Second)
		f.eachHasOne("two shards")
		holder := "pod-1"
		connection := &client{server: f.server}
		_, _ = connection.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "heliostat"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}, metav1.CreateOptions{})
		leads := make(chan struct{})
		go func() {
			New(Config{Client: connection, Group: "heliostat", Logger: slog.New(slog.DiscardHandler),
				Timing: Timing{Lease: 6 * time.Second, Deadline: 4 * time.Second}}).AwaitEnd(t.Context())
			close(leads)
		}()
		f.stop[1]() // it leaves; the other one is cut off, and nobody removes its Lease but the leader
		f.setCut(0, true)
		began := time.Now()
		<-leads
		if counts := f.writers(); slices.Max(counts) != 0 {
			t.Errorf("when the leader begins, the writers are %v", counts)
		}
		if took := time.Since(began); took < 4*time.Second || took > 8*time.Second {
			t.Errorf("the leader has waited %v, want about the 6 s of a Lease", took)
		}
		f.setCut(0, false)
		for range 20 { // the one that comes back sees that its Lease is gone, and leaves all to the leader
			time.Sleep(200 * time.Millisecond)
			if counts := f.writers(); slices.Max(counts) != 0 {
				t.Fatalf("beside the leader the writers are %v", counts)
			}
		}
	})
}

func TestALeaderWithoutTheRightToListDoesNotWait(t *testing.T) {
	member := New(Config{Client: forbidden{}, Group: "heliostat", Logger: slog.New(slog.DiscardHandler),
		Timing: Timing{Lease: 6 * time.Second, Deadline: 4 * time.Second}})
	member.AwaitEnd(t.Context())
}

// forbidden refuses lists.
type forbidden struct {
	coordinationv1client.LeaseInterface
}

func (f forbidden) Leases(string) coordinationv1client.LeaseInterface { return f }

func (f forbidden) List(context.Context, metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	return nil, apierrors.NewForbidden(leaseKind, "", nil)
}

func TestANewRayClusterDoesNotWaitForTheNextReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3)
		defer f.end()
		f.join(1)
		f.watch(2 * time.Second)
		key := nodepool.ClusterKey{Namespace: "ml", Name: "new"}
		f.keys = append(slices.Clone(f.keys), key)
		_, leave, mine := f.members[0].Enter(t.Context(), key)
		if !mine || !f.members[0].May(key) {
			t.Fatal("the owner of a new RayCluster does not know it")
		}
		leave()
	})
}

// lines counts what members log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), message)
}

// unowned returns how many RayClusters each member counts that nobody decides about.
func (f *fleet) unowned(members ...int) (counts []int) {
	for _, i := range members {
		counts = append(counts, f.members[i].View().Unowned)
	}
	return counts
}

func TestWhatALeaseClaimsThatCannotBeRemovedHasNoShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lines{}
		f := newFleet(t, 60)
		defer f.end()
		f.join(3, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(logged, nil)) })
		f.watch(5 * time.Second)
		f.eachHasOne("three members")
		lost := len(f.owned(2))
		f.server.refuse("delete")
		f.setCut(2, true)
		f.watch(5 * time.Second)
		if got := f.unowned(0, 1); !slices.Equal(got, []int{0, 0}) {
			t.Errorf("before its Lease has expired, %v RayClusters are without a shard", got)
		}
		f.watch(4 * time.Second)
		time.Sleep(2 * time.Minute)
		if got := f.unowned(0, 1); !slices.Equal(got, []int{lost, lost}) {
			t.Errorf("%v RayClusters are without a shard, want the %d of the one that has ended", got, lost)
		}
		if n := logged.count("removing the Leases of shards that have ended failed"); n < 4 || n > 6 {
			t.Errorf("two members have logged %d times in two minutes that they cannot remove a Lease, want once a minute", n)
		}
		f.server.refuse("")
		f.watch(3 * time.Second)
		f.eachHasOne("the Lease can be removed")
		if got := f.unowned(0, 1); !slices.Equal(got, []int{0, 0}) {
			t.Errorf("with one writer each, %v RayClusters are without a shard", got)
		}
	})
}

func TestAReadingOfLeasesThatFailsGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := &lines{}
		f := newFleet(t, 60)
		defer f.end()
		f.server.refuse("list")
		f.join(2, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(logged, nil)) })
		if v := f.members[1].View(); v.Started || v.ReadAge >= 0 {
			t.Errorf("before the start it knows %+v", v)
		}
		f.watch(3 * time.Second)
		if v := f.members[1].View(); !v.Started || v.ReadAge >= 0 {
			t.Errorf("without a reading it knows %+v", v)
		}
		f.server.refuse("")
		f.watch(5 * time.Second)
		for i, m := range f.members {
			if age := m.View().ReadAge; age < 0 || age > 2*time.Second {
				t.Errorf("member %d has read %v ago", i, age)
			}
		}
		before := logged.count("reading the Leases of shards failed")
		f.server.refuse("list")
		f.watch(30 * time.Second)
		for i, m := range f.members {
			if age := m.View().ReadAge; age < 28*time.Second || age > 31*time.Second {
				t.Errorf("without lists for 30 s, member %d has read %v ago", i, age)
			}
		}
		if n := logged.count("reading the Leases of shards failed") - before; n != 2 {
			t.Errorf("two members have logged %d times in half a minute that they cannot read, want once each", n)
		}
	})
}
