package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is a lease that another process may take, and an API server that may fail.
type fakeLock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (f *fakeLock) Identity() string { return "me" }

func (f *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := f.record
	return &record, nil, f.err
}

func (f *fakeLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if f.err == nil {
		f.record = record
	}
	return f.err
}

func (f *fakeLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.Update(ctx, record)
}

func TestTheRightToWriteEndsWithTheLease(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	tests := []struct {
		name string
		then func(l *lease, f *fakeLock, clock *time.Time)
		want bool
	}{
		{"renewed just now", func(*lease, *fakeLock, *time.Time) {}, true},
		{"within the deadline", func(_ *lease, _ *fakeLock, clock *time.Time) { *clock = clock.Add(renewDeadline - time.Millisecond) }, true},
		{"a process that slept past the deadline", func(_ *lease, _ *fakeLock, clock *time.Time) { *clock = clock.Add(renewDeadline) }, false},
		{"a process that slept past the deadline and renews", func(l *lease, _ *fakeLock, clock *time.Time) {
			*clock = clock.Add(renewDeadline)
			if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}); !errors.Is(err, errLapsed) {
				t.Errorf("a late renewal ends with %v, want %v", err, errLapsed)
			}
		}, false},
		{"a failed renewal does not count", func(l *lease, f *fakeLock, clock *time.Time) {
			*clock = clock.Add(3 * time.Second)
			f.err = errors.New("timeout")
			_ = l.Update(t.Context(), mine)
			*clock = clock.Add(time.Second)
		}, false},
		{"a renewal counts from when it was asked for", func(l *lease, f *fakeLock, clock *time.Time) {
			l.Interface = slowLock{f, clock}
			_ = l.Update(t.Context(), mine)
		}, false},
		{"another name is read", func(l *lease, f *fakeLock, _ *time.Time) {
			f.record.HolderIdentity = "other"
			_, _, _ = l.Get(t.Context())
		}, false},
		{"own name is read", func(l *lease, _ *fakeLock, _ *time.Time) { _, _, _ = l.Get(t.Context()) }, true},
		{"released", func(l *lease, _ *fakeLock, _ *time.Time) {
			_ = l.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clock := time.Unix(1_700_000_000, 0)
			fake := &fakeLock{}
			l := &lease{Interface: fake, now: func() time.Time { return clock }}
			if l.held() {
				t.Fatal("held before it was taken")
			}
			must(t, l.Create(t.Context(), mine))
			test.then(l, fake, &clock)
			if got := l.held(); got != test.want {
				t.Errorf("held is %v, want %v", got, test.want)
			}
		})
	}
}

// slowLock answers so late that the next holder's clock has run out meanwhile.
type slowLock struct {
	*fakeLock
	clock *time.Time
}

func (s slowLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	*s.clock = s.clock.Add(renewDeadline)
	return s.fakeLock.Update(ctx, record)
}

func TestNobodyWritesBetweenTwoHolders(t *testing.T) {
	if renewDeadline+retryPeriod >= leaseDuration || retryPeriod >= time.Second {
		t.Errorf("lease %v, deadline %v, retry %v: the old holder must stop before the new one starts, and notice within a second",
			leaseDuration, renewDeadline, retryPeriod)
	}
}

func TestTheLeaderIsWhoRenewedLatelyAndIsCalledAtTheAddressInItsIdentity(t *testing.T) {
	clock := time.Unix(1_700_000_000, 0)
	fake := &fakeLock{}
	l := &lease{Interface: fake, now: func() time.Time { return clock }}
	renewals := 0
	held := func(by string) {
		t.Helper()
		renewals++
		fake.record = resourcelock.LeaderElectionRecord{HolderIdentity: by, RenewTime: metav1.NewTime(time.Unix(int64(renewals), 0))}
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	is := func(when, wantAddress string, want bool) {
		t.Helper()
		if address, known := l.leader(); address != wantAddress || known != want {
			t.Errorf("%s: %q, %v, want %q, %v", when, address, known, wantAddress, want)
		}
	}
	is("before anything is read", "", false)
	held(identity("heliostat-7d_x", "10.1.2.3:8090"))
	is("just read", "10.1.2.3:8090", true)
	clock = clock.Add(leaseDuration - time.Millisecond)
	is("until it runs out", "10.1.2.3:8090", true)
	if _, _, err := l.Get(t.Context()); err != nil { // the same record again is no renewal
		t.Fatal(err)
	}
	clock = clock.Add(time.Millisecond)
	is("run out", "", false)
	held(identity("other", "[fd00::1]:8090"))
	is("taken by another", "[fd00::1]:8090", true)
	fake.err = errors.New("timeout")
	if _, _, err := l.Get(t.Context()); err == nil {
		t.Fatal("the fake does not fail")
	}
	is("not readable for a moment", "[fd00::1]:8090", true)
	fake.err = nil
	held("")
	is("given back", "", false)
	held(identity("older", ""))
	is("an older version, or one on loopback", "", true)
	held("pod_1_evil.example:80")
	is("a name, which would be looked up", "", true)
}
