package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	applyv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

const (
	// ShardsLabel is on the Leases of slots and of shards. Its value is LeaseName.
	ShardsLabel = "heliostat.dev/shards"
	// slots is how many there are, whatever the number of shards: 2, 3, 4 and 6 have equal shares. All versions of
	// Heliostat must have the same number.
	slots = 12
)

// Shards divides RayClusters among several processes, of which each is a shard (docs/design/0007-shards.md). A hash
// gives each RayCluster one of a fixed number of slots. Each slot has a Lease, renewed by client-go's leader election,
// and its holder may act on the RayClusters of the slot. Each shard also has a Lease in its own name. It gives no
// right: by it the others know that the shard is there, and how many slots are a fair share.
type Shards struct {
	options Options
	leases  coordinationv1client.LeaseInterface
	// id names this process for one run: one that starts again under the name of one that hangs would share its terms.
	// identity is the id with the address.
	id, identity string
	// keys lists what needs an owner. changed requests a cycle of a RayCluster that has come or gone, which sees which.
	keys    func() ([]nodepool.ClusterKey, error)
	changed func(nodepool.ClusterKey)

	mu    sync.Mutex // guards what follows
	slots [slots]slot
	// seen are the Leases of the last reading, of readAt. shards are the holders of those of shards, the oldest first.
	// led: a leader of the form without shards has its Lease.
	seen   map[string]sighting
	readAt time.Time
	shards []string
	led    bool
	// movedAt is when a slot was last seen to move, and came counts how often RayClusters came to this shard.
	movedAt time.Time
	came    int64
	// known are the RayClusters of the last reading, of which nobody decides about unowned.
	known   map[nodepool.ClusterKey]bool
	unowned int
	// cycles are those that run, and terms what this shard has written to each RayCluster.
	cycles  map[nodepool.ClusterKey]context.CancelFunc
	terms   map[nodepool.ClusterKey]*term
	begun   int
	started bool
}

// slot is what a shard knows of a slot.
type slot struct {
	lease *lease
	// end ends the election of this shard, nil without one. leaving: the election ends when no cycle runs any more.
	end     context.CancelFunc
	leaving bool
	// mine: this shard decides about the slot's RayClusters, from when a reading confirms its Lease until it hands over
	// or reads that another shard has the Lease. It may write while the Lease is still the one that was confirmed.
	mine      bool
	confirmed time.Time
	// holder is the identity in a Lease that counts, by the last reading.
	holder string
}

// left returns for how long the shard may write without another renewal.
func (s *slot) left() time.Duration {
	if since := s.lease.since(); !s.mine || since.IsZero() || !since.Equal(s.confirmed) {
		return 0
	}
	return s.lease.left()
}

// acts reports whether the shard may write.
func (s *slot) acts() bool { return s.left() > 0 }

// sighting is a version of a Lease, and when it was first seen.
type sighting struct {
	version string
	at      time.Time
}

// newShards returns a shard that owns nothing.
func newShards(client coordinationv1client.LeasesGetter, options Options) *Shards {
	s := &Shards{
		options: options, leases: client.Leases(options.LeaseNamespace),
		id:     options.LeaseName + "-" + rand.String(8),
		cycles: map[nodepool.ClusterKey]context.CancelFunc{}, terms: map[nodepool.ClusterKey]*term{},
	}
	s.identity = s.id + "_" + options.Address
	for i := range s.slots {
		s.slots[i].lease = newLease(client, metav1.ObjectMeta{
			Namespace: options.LeaseNamespace, Name: options.LeaseName + "-slot-" + strconv.Itoa(i),
			Labels: map[string]string{ShardsLabel: options.LeaseName},
		}, s.identity, time.Now)
	}
	return s
}

// slotOf returns the slot of a RayCluster. All versions of Heliostat must compute the same.
func (s *Shards) slotOf(key nodepool.ClusterKey) *slot {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.String())) // a hash returns no error
	return &s.slots[h.Sum32()%slots]
}

// Start takes part until ctx ends, and then leaves. Call it when cycles may run.
func (s *Shards) Start(ctx context.Context) {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	for {
		pause := reflector.Jittered(retryPeriod)
		if !s.turn(ctx) {
			pause /= 8
		}
		if !reflector.Sleep(ctx, pause) {
			s.leave()
			return
		}
	}
}

// turn renews this shard's own Lease, reads all others, and stands for a fair share of the slots. It reports whether
// nothing is left to do but to renew.
func (s *Shards) turn(ctx context.Context) (settled bool) {
	call, cancel := context.WithTimeout(ctx, renewDeadline/2)
	defer cancel()
	own := applyv1.Lease(s.id, s.options.LeaseNamespace).
		WithLabels(map[string]string{ShardsLabel: s.options.LeaseName}).
		WithSpec(applyv1.LeaseSpec().WithHolderIdentity(s.identity).WithRenewTime(metav1.NowMicro()).
			WithLeaseDurationSeconds(int32(leaseDuration / time.Second)))
	_, ownErr := s.leases.Apply(call, own, metav1.ApplyOptions{FieldManager: "heliostat", Force: true})
	asked := time.Now()
	err := s.read(call)
	keys, keysErr := s.keys()
	if failed := errors.Join(ownErr, err, keysErr); failed != nil {
		s.options.Logger.Warn("reading or renewing the Leases of shards failed; without renewals this shard stops "+
			"writing", "shard", s.id, "error", failed)
	}
	if err != nil || keysErr != nil {
		return true // the next turn is the retry
	}
	s.mu.Lock()
	s.known = make(map[nodepool.ClusterKey]bool, len(keys))
	for _, key := range keys {
		s.known[key] = true
	}
	s.confirm(asked)
	settled = s.stand(context.WithoutCancel(ctx))
	s.count()
	s.mu.Unlock()
	return settled
}

// read reads all Leases from the API server itself, and removes those of shards that have ended without leaving. That
// makes their end an event at the API server: a renewal that comes late fails, as the removal does after a renewal.
func (s *Shards) read(ctx context.Context) error {
	list, err := s.leases.List(ctx, metav1.ListOptions{LabelSelector: ShardsLabel + "=" + s.options.LeaseName})
	if err != nil {
		return fmt.Errorf("listing the Leases of shards: %w", err)
	}
	leader, err := s.leases.Get(ctx, s.options.LeaseName, metav1.GetOptions{})
	if err == nil {
		list.Items = append(list.Items, *leader)
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Lease %s: %w", s.options.LeaseName, err)
	}
	slices.SortFunc(list.Items, func(a, b coordinationv1.Lease) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, l := range s.observe(list.Items) {
		err := s.leases.Delete(ctx, l.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &l.ResourceVersion},
		})
		if err == nil {
			s.options.Logger.Warn("a shard has ended without leaving",
				"lease", l.Name, "holder", *l.Spec.HolderIdentity)
		}
	}
	return nil
}

// observe takes up all Leases, the oldest first, and returns those of slots and shards that have ended.
//
// Nobody looks at the times in a Lease, because the clocks of two machines differ. One that has not changed for
// leaseDuration does not count. After a pause between readings all count as just seen: what paused this process, such
// as the API server, may have paused the others too.
func (s *Shards) observe(leases []coordinationv1.Lease) (ended []coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, seen := time.Now(), make(map[string]sighting, len(leases))
	var holders [slots]string
	paused := now.Sub(s.readAt) > leaseDuration/2
	s.shards, s.led, s.readAt = nil, false, now
	for _, l := range leases {
		seen[l.Name] = sighting{l.ResourceVersion, now}
		if before := s.seen[l.Name]; before.version == l.ResourceVersion && !paused {
			seen[l.Name] = before
		}
		holder := ""
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		counts := holder != "" && now.Sub(seen[l.Name].at) < leaseDuration
		if holder != "" && !counts && l.Name != s.options.LeaseName {
			ended = append(ended, l)
		}
		number, isSlot := strings.CutPrefix(l.Name, s.options.LeaseName+"-slot-")
		i, err := strconv.Atoi(number)
		switch {
		case l.Name == s.options.LeaseName:
			s.led = counts
		case !counts:
		case isSlot && err == nil && i >= 0 && i < slots:
			holders[i] = holder
		default:
			s.shards = append(s.shards, holder)
		}
	}
	s.seen = seen
	for i := range s.slots {
		if s.slots[i].holder != holders[i] {
			s.slots[i].holder, s.movedAt = holders[i], now
		}
	}
	return ended
}

// confirm takes up the slots whose Leases this shard got before it asked for the last reading, unless that shows a
// leader. So of a leader and a shard, the one that got its Lease later sees the other. The caller holds mu.
func (s *Shards) confirm(asked time.Time) {
	gained := false
	for i := range s.slots {
		slot := &s.slots[i]
		since := slot.lease.since()
		if s.led || slot.leaving || since.IsZero() || !asked.After(since) {
			continue
		}
		slot.confirmed = since
		if !slot.mine {
			slot.mine, gained = true, true
			s.request(slot)
			s.options.Logger.Info("RayClusters come to this shard", "shard", s.id, "slot", i)
		}
	}
	if gained {
		s.came++
	}
	for key, t := range s.terms {
		if !s.known[key] || !t.lost.IsZero() && asked.After(t.lost) && s.slotOf(key).acts() {
			delete(s.terms, key)
		}
	}
}

// stand keeps to a fair share of the slots: it hands over those above it, and stands for the election of others that
// nobody holds. It reports whether nothing is under way. The caller holds mu.
func (s *Shards) stand(ctx context.Context) (settled bool) {
	rank := slices.Index(s.shards, s.identity)
	if rank < 0 {
		return true // the others do not know this shard yet
	}
	share := slots / len(s.shards)
	if rank < slots%len(s.shards) {
		share++
	}
	settled = true
	for i := range s.slots {
		slot := &s.slots[i]
		if slot.end == nil {
			continue
		}
		elsewhere := slot.holder != "" && slot.holder != s.identity && slot.lease.since().IsZero()
		if elsewhere || share == 0 || s.led && !slot.acts() {
			s.handOver(slot)
		}
		if !slot.leaving {
			share--
		}
		settled = settled && slot.acts()
	}
	s.endIdle()
	for n := range s.slots {
		slot := &s.slots[(rank*slots/len(s.shards)+n)%slots] // each begins elsewhere
		if share > 0 && slot.end == nil && (slot.holder == "" || slot.holder == s.identity) && !s.led {
			s.elect(ctx, slot)
			share--
			settled = false
		}
	}
	return settled
}

// elect holds the Lease of a slot, once and again, until its context ends. client-go counts the deadline from the
// attempt after the last renewal, so it gets less. The caller holds mu.
func (s *Shards) elect(ctx context.Context, slot *slot) {
	ctx, slot.end = context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	config := leaderelection.LeaderElectionConfig{
		Lock: slot.lease, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline - retryPeriod,
		RetryPeriod: retryPeriod, Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { s.lapsed(slot) },
		},
	}
	go func() {
		for ctx.Err() == nil {
			leaderelection.RunOrDie(ctx, config) // it panics for a bad config, and this one is fixed
		}
		s.mu.Lock()
		idle := s.idle(slot)
		s.mu.Unlock()
		if idle {
			call, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline/2)
			defer cancel()
			if err := slot.lease.release(call); err != nil {
				s.options.Logger.Warn("cannot release a slot; another shard gets it when its Lease expires",
					"shard", s.id, "lease", slot.lease.Describe(), "error", err)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		slot.end, slot.leaving = nil, false
		if slot.holder == s.identity {
			slot.holder = ""
		}
	}()
}

// lapsed ends the cycles of a slot whose Lease has lapsed, because their calls must end in the margin. Those that
// follow write nothing until the Lease is confirmed again; if nobody has taken it, they go on with the same terms.
func (s *Shards) lapsed(slot *slot) {
	slot.lease.set(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel(slot)
	if slot.mine {
		s.request(slot)
	}
}

// handOver gives up a slot: its Lease is released when no cycle runs any more. The caller holds mu.
func (s *Shards) handOver(slot *slot) {
	if slot.end == nil || slot.leaving {
		return
	}
	if slot.mine {
		s.options.Logger.Info("RayClusters leave this shard", "shard", s.id, "lease", slot.lease.Describe())
	}
	slot.leaving, slot.mine, s.movedAt = true, false, time.Now()
	s.cancel(slot)
	s.request(slot)
	for key := range s.terms {
		if s.slotOf(key) == slot {
			delete(s.terms, key)
		}
	}
}

// request requests a cycle of each RayCluster of a slot. The caller holds mu.
func (s *Shards) request(slot *slot) {
	for key := range s.known {
		if s.slotOf(key) == slot {
			s.changed(key)
		}
	}
}

// cancel ends the cycles of a slot that run. The caller holds mu.
func (s *Shards) cancel(slot *slot) {
	for key, end := range s.cycles {
		if s.slotOf(key) == slot {
			end()
		}
	}
}

// idle reports whether no cycle of a slot runs. The caller holds mu.
func (s *Shards) idle(slot *slot) bool {
	for key := range s.cycles {
		if s.slotOf(key) == slot {
			return false
		}
	}
	return true
}

// endIdle ends the elections of the slots that are handed over and in which no cycle runs any more, and reports whether
// no election is left. The caller holds mu.
func (s *Shards) endIdle() (none bool) {
	none = true
	for i := range s.slots {
		slot := &s.slots[i]
		if slot.leaving && s.idle(slot) {
			slot.end()
		}
		none = none && slot.end == nil
	}
	return none
}

// leave hands everything over, and removes the Lease of this shard.
func (s *Shards) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), renewDeadline)
	defer cancel()
	for left := false; !left && ctx.Err() == nil; reflector.Sleep(ctx, 5*time.Millisecond) {
		s.mu.Lock()
		for i := range s.slots {
			s.handOver(&s.slots[i])
		}
		left = s.endIdle()
		s.mu.Unlock()
	}
	s.mu.Lock()
	for i := range s.slots {
		if end := s.slots[i].end; end != nil {
			end() // a cycle does not end: the Lease expires
		}
	}
	s.mu.Unlock()
	if err := s.leases.Delete(ctx, s.id, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.options.Logger.Warn("cannot remove the Lease of this shard; another one does", "shard", s.id, "error", err)
	}
}

// count counts the RayClusters about which nobody decides. The caller holds mu.
func (s *Shards) count() {
	s.unowned = 0
	for key := range s.known {
		if slot := s.slotOf(key); !s.led && !slot.mine && (slot.holder == "" || slot.holder == s.identity) {
			s.unowned++
		}
	}
}

// awaitEnd returns when no shard has the Lease of a slot, or ctx ends. A leader calls it once it has its own Lease:
// each shard that gets a slot later sees that, and those that have one already still have its Lease. Without the right
// to list Leases it does not wait.
func (s *Shards) awaitEnd(ctx context.Context) {
	for waited := false; ; waited = true {
		err := s.read(ctx)
		held := slices.ContainsFunc(s.slots[:], func(s slot) bool { return s.holder != "" })
		switch {
		case apierrors.IsForbidden(err):
			s.options.Logger.Warn("this leader may not list Leases, so it does not wait for shards that still run; "+
				"allow list and delete of leases in its namespace", "namespace", s.options.LeaseNamespace)
			return
		case err == nil && !held:
			return
		case !waited:
			s.options.Logger.Info("this leader waits until shards have ended", "error", err)
		}
		if !reflector.Sleep(ctx, retryPeriod/4) {
			return
		}
	}
}
