package kube

import (
	"context"
	"fmt"
	"os"
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

	mu      sync.Mutex
	renewed time.Time // guarded by mu; zero while another holds the lease
}

func newLease(config *rest.Config, namespace, name string, now func() time.Time) (*lease, error) {
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
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())})
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

// Get notices that another process has taken the lease.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.set(time.Time{})
	}
	return record, raw, err
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
