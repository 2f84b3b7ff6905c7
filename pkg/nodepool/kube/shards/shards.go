package shards

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// Config is what a member needs.
type Config struct {
	Client coordinationv1client.LeasesGetter
	// Group names the members that divide RayClusters, and begins the names of their Leases. A Lease of that very name
	// is the one of a leader that owns all RayClusters.
	Namespace, Group string
	// Address is where other members reach this one, an IP address and a port; empty means nowhere.
	Address string
	// Most limits how many members own RayClusters, the oldest; 0 means all.
	Most   int
	Timing Timing
	// Retry is the pause between two renewals.
	Retry time.Duration
	// Clusters lists what needs an owner. Changed requests a cycle of a RayCluster that has come or gone, which sees
	// which.
	Clusters func() ([]nodepool.ClusterKey, error)
	Changed  func(nodepool.ClusterKey)
	Logger   *slog.Logger
}

// Shards is one member.
type Shards struct {
	config Config
	timing Timing
	leases coordinationv1client.LeaseInterface
	now    func() time.Duration
	began  metav1.MicroTime

	mu       sync.Mutex
	member   *Member   // guarded by mu
	holdings *Holdings // guarded by mu
	// cycles are those that run, by RayCluster. Guarded by mu.
	cycles map[string]context.CancelFunc
	// came counts the readings with which RayClusters came. Guarded by mu.
	came int64
	// started is true from Start on. readAt is when the last reading ended that succeeded; negative before the first.
	// Guarded by mu.
	started bool
	readAt  time.Duration
	// moving counts the RayClusters that nobody claims, or that this member claims but does not own yet, and unowned
	// those of View. awaited are those that this member claims but does not own, and since when. Guarded by mu.
	moving, unowned int
	awaited         map[string]time.Duration
	// lapse ends the cycles that run when the right to write ends; nil before the first renewal. Guarded by mu.
	lapse *time.Timer
	// reported is when errors of each kind were logged last. Guarded by mu.
	reported map[string]time.Duration
}

// New returns a member that owns nothing. Its name is new for each process, because a process that starts again under
// the name of one that hangs would share its term.
func New(config Config) *Shards {
	id := config.Group + "-" + rand.String(8)
	start := time.Now()
	return &Shards{
		config: config, timing: config.Timing, leases: config.Client.Leases(config.Namespace),
		now: func() time.Duration { return time.Since(start) }, began: metav1.NewMicroTime(start),
		member: NewMember(id, config.Timing, config.Most), holdings: NewHoldings(id),
		cycles: map[string]context.CancelFunc{}, readAt: -1, reported: map[string]time.Duration{},
	}
}

// Start takes part until ctx ends, and then leaves. Call it when cycles may run.
func (s *Shards) Start(ctx context.Context) {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	for {
		settled := s.turn(ctx)
		pause := reflector.Jittered(s.config.Retry)
		if !settled {
			pause /= 8
		}
		if !reflector.Sleep(ctx, pause) {
			s.leave()
			return
		}
	}
}

// turn renews, reads the others, and removes those that have ended. It reports whether nothing is left to do but to
// renew.
func (s *Shards) turn(ctx context.Context) bool {
	write, asked := s.nextWrite()
	answered := s.store(ctx, write, asked)
	if !s.read(ctx) {
		return true // the next turn is the retry
	}
	s.removeExpired(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return !answered || s.member.Settled()
}

// nextWrite returns the next write. What the member gives up with it must end first; until then it only renews.
func (s *Shards) nextWrite() (Write, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	write := s.member.Next()
	s.drop()
	for key := range s.cycles {
		if !s.holdings.Holds(key) {
			write = s.member.Renewal()
			break
		}
	}
	s.member.Sent(write)
	return write, s.now()
}

// drop ends the cycles of RayClusters that this member does not own any more. The caller holds mu.
func (s *Shards) drop() {
	for _, key := range s.holdings.Drop(s.member.Owns) {
		s.handOver(key)
	}
}

// handOver ends the cycle of a RayCluster that was lost, and requests one that forgets it. The caller holds mu.
func (s *Shards) handOver(key string) {
	if end := s.cycles[key]; end != nil {
		end()
	}
	s.config.Logger.Debug("a RayCluster leaves this shard", "cluster", key)
	s.config.Changed(keyOf(key))
}

// renewed lets cycles run until the deadline. The caller holds mu.
func (s *Shards) renewed() {
	left := s.member.Left(s.now())
	if s.lapse == nil {
		s.lapse = time.AfterFunc(left, s.lapsed)
	} else {
		s.lapse.Reset(left)
	}
}

// lapsed ends the cycles that run, because their calls must end in the margin. Those that follow write nothing until
// the Lease is renewed.
func (s *Shards) lapsed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.member.Left(s.now()) > 0 {
		return
	}
	for key, end := range s.cycles {
		end()
		s.config.Changed(keyOf(key))
	}
}

// Enter begins a cycle of a RayCluster. mine is false if another member owns it, or nobody yet. Otherwise the context
// ends when this member loses the RayCluster or its right to write, and the caller must call leave at the end of the
// cycle.
func (s *Shards) Enter(ctx context.Context, key nodepool.ClusterKey) (inside context.Context, leave func(), mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := key.String()
	s.holdings.Begin(name, s.member.Owns)
	if !s.holdings.Has(name) {
		return ctx, nil, false
	}
	inside, end := context.WithCancel(ctx)
	s.cycles[name] = end
	return inside, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cycles, name)
	}, true
}

// May reports whether this member may write to a RayCluster now.
func (s *Shards) May(key nodepool.ClusterKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.member.Left(s.now()) > 0 && s.holdings.Holds(key.String())
}

// Owns reports whether this member decides about a RayCluster, whether it may write now or not.
func (s *Shards) Owns(key nodepool.ClusterKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holdings.Has(key.String())
}

// Left returns for how long this member may write without another renewal.
func (s *Shards) Left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.member.Left(s.now())
}

// Fence returns the term that a patch writes to a RayCluster that carries another, "" for none, and that the patch
// tests. nodepool.ErrNotLeading: this member must not write to it any more.
func (s *Shards) Fence(key nodepool.ClusterKey, stored string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	term, may := s.holdings.Fence(key.String(), stored)
	if !may {
		return "", fmt.Errorf("%w: RayCluster %s was last written by shard %q", nodepool.ErrNotLeading, key, stored)
	}
	return term, nil
}

// Rejected notes that a patch with a term was certainly not stored.
func (s *Shards) Rejected(key nodepool.ClusterKey, term, stored string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holdings.Rejected(key.String(), term, stored)
}
