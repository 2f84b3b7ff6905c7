package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The leader lease. A holder renews every retryPeriod, stops writing renewDeadline after its last successful renewal,
// and another may take over leaseDuration after it: nobody writes in the two seconds between.
const (
	leaseDuration = 6 * time.Second
	renewDeadline = 4 * time.Second
	retryPeriod   = 800 * time.Millisecond
)

// lease wraps the lock of the leader election, to know at the moment of a write whether this process still leads.
// client-go's elector keeps leading until renewDeadline even after it reads another holder's name, and a process that
// was stopped for a while (SIGSTOP, a frozen machine) wakes up as leader. lease notices both.
type lease struct {
	resourcelock.Interface
	now func() time.Time

	mu sync.Mutex
	// Guarded by mu. renewed is zero while another process holds the lease, and acquired is when it was zero last; last
	// is the last record that was read, and changed is when it changed.
	renewed, acquired time.Time
	last              resourcelock.LeaderElectionRecord
	changed           time.Time
}

// leaseClient connects for Leases, with a user agent of its own.
func leaseClient(config *rest.Config, agent string) (coordinationv1.LeasesGetter, error) {
	config = naming(config, agent)
	config.Timeout = renewDeadline / 2 // one hung request must not cost the lease
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for Leases: %w", err)
	}
	return client, nil
}

// newLeader prepares the leader lease. Other processes read in it the address of this process; "" means none.
func newLeader(config *rest.Config, options Options) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the lease holder: %w", err)
	}
	client, err := leaseClient(config, "leader-election")
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: options.LeaseNamespace, Name: options.LeaseName}
	return newLease(client, meta, identity(host, options.Address), time.Now), nil
}

// newLease prepares the lease of a name, with labels, for a process with an identity.
func newLease(
	client coordinationv1.LeasesGetter, meta metav1.ObjectMeta, identity string, now func() time.Time,
) *lease {
	return &lease{Interface: &resourcelock.LeaseLock{
		LeaseMeta: meta, Client: client, Labels: meta.Labels,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}, now: now}
}

// held reports whether this process renewed the lease within renewDeadline and has not read another holder's name
// since.
func (l *lease) held() bool { return l.left() > 0 }

// left returns for how long it is held without another renewal. A longer write may arrive under the next holder.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	return max(0, renewDeadline-l.now().Sub(l.renewed))
}

// since returns when this process got the lease, if it has held it ever since; zero if not.
func (l *lease) since() time.Time {
	if !l.held() {
		return time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acquired
}

// release gives the lease to whoever wants it, if this process has it. Call it when its election has ended.
func (l *lease) release(ctx context.Context) error {
	record, _, err := l.Get(ctx)
	if err != nil || record.HolderIdentity != l.Identity() {
		return err
	}
	record.HolderIdentity = ""
	return l.Update(ctx, *record)
}

// identity names a process by its host, a number unique to each start, and its address.
func identity(host, address string) string {
	name := host + "_" + string(uuid.NewUUID())
	if address != "" {
		name += "_" + address
	}
	return name
}

// addressIn returns the address in an identity, or "". Only a literal address counts: a lease must not cause DNS
// lookups.
func addressIn(identity string) string {
	last := identity[strings.LastIndexByte(identity, '_')+1:]
	if _, err := netip.ParseAddrPort(last); err != nil {
		return ""
	}
	return last
}

// Get notices that another process has taken the lease.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.read(record)
	}
	return record, raw, err
}

// read remembers the newest record and since when it has not changed, by this process's own clock, because others may
// be wrong.
func (l *lease) read(record *resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if record.HolderIdentity != l.Identity() {
		l.renewed = time.Time{}
	}
	if record.HolderIdentity != l.last.HolderIdentity || !record.RenewTime.Equal(&l.last.RenewTime) {
		l.last, l.changed = *record, l.now()
	}
}

// leader returns the address of the process that holds the lease, "" if it has none; false if no holder is known,
// because the lease was released, expired, or cannot be read.
func (l *lease) leader() (address string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.HolderIdentity == "" || l.now().Sub(l.changed) >= leaseDuration {
		return "", false
	}
	return addressIn(l.last.HolderIdentity), true
}

// Create takes a lease that does not exist. If this process had one, it was lost with the object.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if !l.lapsed(l.now()) {
		l.set(time.Time{})
	}
	return l.record(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update renews the lease, or releases it.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.record(record, func() error { return l.Interface.Update(ctx, record) })
}

// record counts a renewal from before the request was sent, when the others' clocks may have started.
func (l *lease) record(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := l.now()
	if record.HolderIdentity != l.Identity() {
		l.set(time.Time{})
		return write()
	}
	if l.lapsed(asked) {
		return errLapsed
	}
	if err := write(); err != nil {
		return err
	}
	l.set(asked)
	return nil
}

// errLapsed ends a holder that was suspended or cut off for longer than renewDeadline.
var errLapsed = errors.New("the last renewal of the lease is too old: others may have taken over")

// lapsed reports whether this process led, and has not renewed for longer than renewDeadline. It must not go on: shards
// act when a leader's Lease has not changed for leaseDuration, and do not remove it.
func (l *lease) lapsed(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && now.Sub(l.renewed) >= renewDeadline
}

func (l *lease) set(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		l.acquired = l.now()
	}
	l.renewed = renewed
}
