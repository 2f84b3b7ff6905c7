package kube

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
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

// lease wraps the lock of the leader election to know, at the very moment of a write, whether this process still leads.
// client-go's elector goes on leading until renewDeadline even when it has read another holder's name, and a process that was
// stopped for a while (SIGSTOP, a frozen machine) wakes up as leader. Both are noticed here.
type lease struct {
	resourcelock.Interface
	now func() time.Time

	mu sync.Mutex
	// Guarded by mu. renewed is zero while another holds the lease; last is what was read, and changed when that was new.
	renewed time.Time
	last    resourcelock.LeaderElectionRecord
	changed time.Time
}

// newLease prepares the lease; others read in it at which address this process is called, "" for nowhere.
func newLease(config *rest.Config, namespace, name, address string, now func() time.Time) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming the lease holder: %w", err)
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = renewDeadline / 2 // one hung request must not cost the lease
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for lease %s/%s: %w", namespace, name, err)
	}
	coordination, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting for lease %s/%s: %w", namespace, name, err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, core, coordination,
		resourcelock.ResourceLockConfig{Identity: identity(host, address)})
	if err != nil {
		return nil, fmt.Errorf("making lease %s/%s: %w", namespace, name, err)
	}
	return &lease{Interface: lock, now: now}, nil
}

// held reports whether this process renewed the lease within renewDeadline and has not read another holder's name since.
func (l *lease) held() bool { return l.left() > 0 }

// left is for how long it is held without another renewal: a write that takes longer may land under the next holder.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return 0
	}
	return max(0, renewDeadline-l.now().Sub(l.renewed))
}

// identity names a process by its host, a number that no other start has, and the address where it is called.
func identity(host, address string) string {
	name := host + "_" + string(uuid.NewUUID())
	if address != "" {
		name += "_" + address
	}
	return name
}

// addressIn is the address in an identity; "" where there is none. Only a literal address counts: nobody shall be looked up
// because of what a lease says.
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

// read remembers the newest record and since when it is as it is: by this process' own clock, as another's may be wrong.
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

// leader returns the address of the process that holds the lease, "" for one that cannot be called; false where nobody is
// known to hold it, because it was given back, ran out, or cannot be read.
func (l *lease) leader() (address string, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.HolderIdentity == "" || l.now().Sub(l.changed) >= leaseDuration {
		return "", false
	}
	return addressIn(l.last.HolderIdentity), true
}

// Create takes a lease that does not exist yet.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.record(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update renews the lease, or releases it.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.record(record, func() error { return l.Interface.Update(ctx, record) })
}

// record counts a renewal from before the request was sent: that is when the others' clocks may have started.
func (l *lease) record(record resourcelock.LeaderElectionRecord, write func() error) error {
	asked := l.now()
	if record.HolderIdentity != l.Identity() {
		l.set(time.Time{})
		return write()
	}
	if err := write(); err != nil {
		return err
	}
	l.set(asked)
	return nil
}

func (l *lease) set(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed
}
