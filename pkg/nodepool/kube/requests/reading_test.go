package requests

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var (
	errRefused = apierrors.NewForbidden(v1alpha1.Resource.GroupResource(), "", errors.New("not yet"))
	errUnfound = apierrors.NewNotFound(v1alpha1.Resource.GroupResource(), "")
)

// readingWorld is a store whose clock, and what discovery answers, are the test's.
type readingWorld struct {
	*watchedStore
	t     *testing.T
	now   time.Time
	known *bool
	// ahead is by how much the clock was set ahead.
	ahead time.Duration
}

func newReadingWorld(t *testing.T) *readingWorld {
	s, _ := requestStore()
	w := &readingWorld{watchedStore: s, t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	begun := w.now
	w.Store.now = func() time.Time { return w.now }
	w.Store.uptime = func() time.Duration { return w.now.Sub(begun) - w.ahead }
	w.Store.known = func(context.Context) *bool { return w.known }
	return w
}

// setClock sets the clock ahead, or back.
func (w *readingWorld) setClock(by time.Duration) { w.now, w.ahead = w.now.Add(by), w.ahead+by }

// refuse lets the API server refuse for a while, every two seconds.
func (w *readingWorld) refuse(err error, duration time.Duration) {
	for end := w.now.Add(duration); w.now.Before(end); w.now = w.now.Add(retryPause) {
		w.miss(w.t.Context(), "", err)
	}
}

func (w *readingWorld) want(what string, unknown bool, requests, findings int) {
	w.t.Helper()
	c := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}}
	w.AddTo(&c)
	if (c.OwnedUnknown != "") != unknown || len(c.Owned) != requests || len(c.Findings) != findings {
		w.t.Errorf("%s: unknown %q, requests %v, findings %v", what, c.OwnedUnknown, c.Owned, c.Findings)
	}
}

func TestRequestsThatCannotBeReadAnyMoreAreKept(t *testing.T) {
	for name, err := range map[string]error{"forbidden": errRefused, "not found": errUnfound, "no answer": errors.New("connection refused")} {
		t.Run(name, func(t *testing.T) {
			w := newReadingWorld(t)
			w.want("before anything was read", true, 0, 0)
			_ = w.Replace([]any{storedRequest("a", "5", "llm")}, "6")
			w.want("read", false, 1, 0)
			w.refuse(err, time.Hour)
			w.want("refused for an hour", true, 1, 0)
			if err := w.available("ml"); err != nil {
				t.Errorf("what is known is reported no more: %v", err)
			}
			_ = w.Replace([]any{storedRequest("a", "5", "llm")}, "9")
			w.want("read again", false, 1, 0)
		})
	}
}

func TestOnlyDiscoveryThatIsSeenTwiceProvesThatThereAreNoRequests(t *testing.T) {
	w := newReadingWorld(t)
	_ = w.Replace([]any{storedRequest("a", "5", "llm")}, "6")
	w.known = new(true)
	w.refuse(errUnfound, 10*time.Second)
	w.want("not found, but discovery has it", true, 1, 0)
	w.known = new(false)
	w.miss(t.Context(), "", errUnfound)
	w.miss(t.Context(), "", errUnfound)
	w.want("twice at one moment", true, 1, 0)
	w.now = w.now.Add(retryPause)
	w.miss(t.Context(), "", errRefused)
	w.miss(t.Context(), "", errUnfound)
	w.want("once, after another answer", true, 1, 0)
	w.now = w.now.Add(retryPause)
	w.miss(t.Context(), "", errUnfound)
	w.want("twice in a row", false, 0, 0)
	if err := w.available("ml"); !errors.Is(err, nodepool.ErrNoRequests) {
		t.Errorf("available: %v", err)
	}
}

func TestARightThatWasNeverGrantedIsNotWaitedForForEver(t *testing.T) {
	w := newReadingWorld(t)
	w.refuse(errRefused, 58*time.Second)
	w.want("refused for less than a minute", true, 0, 0)
	w.refuse(errors.New("connection refused"), time.Hour)
	w.refuse(errRefused, 30*time.Second)
	w.want("no answer is no refusal", true, 0, 0)
	w.refuse(errRefused, time.Minute)
	w.want("refused for more than a minute", false, 0, 1)
	_ = w.Replace(nil, "6")
	w.want("granted", false, 0, 0)
	w.refuse(errRefused, time.Hour)
	w.want("taken back", true, 0, 0)
}

func TestAWatchThatGoesOnWhereItBrokeOffMissedNothing(t *testing.T) {
	w := newReadingWorld(t)
	w.resume("")
	w.want("resumed before anything was read", true, 0, 0)
	_ = w.Replace([]any{storedRequest("a", "5", "llm")}, "6")
	w.miss(t.Context(), "", errors.New("too many requests"))
	w.want("broken off", true, 1, 0)
	w.resume("")
	w.want("resumed", false, 1, 0)
}

// leasedRequest has a lease that was last renewed at a time, or never.
func leasedRequest(version string, created time.Time, seconds int64, renewed string) *unstructured.Unstructured {
	object := storedRequest("a", version, "llm")
	spec := object.Object["spec"].(map[string]any)
	delete(spec, "holdUntilDeleted")
	spec["leaseSeconds"] = seconds
	if renewed != "" {
		spec["renewTime"] = renewed
	}
	object.Object["metadata"].(map[string]any)["creationTimestamp"] = created.Format(time.RFC3339)
	return object
}

func TestNoLeaseIsOverBeforeItsOwnerCouldBeSeenToRenewIt(t *testing.T) {
	w := newReadingWorld(t)
	of := func() *nodepool.OwnedRequest {
		r, _ := w.get("ml", "a")
		return &r
	}
	_ = w.Replace([]any{leasedRequest("5", w.now.Add(-time.Hour), 600, "")}, "6")
	if at := of().ExpiresAt(); !at.Equal(w.now.Add(time.Minute)) {
		t.Errorf("after a start it is over at %v, want a minute from %v", at, w.now)
	}
	_ = w.Update(leasedRequest("7", w.now.Add(-time.Hour), 10, ""))
	if at := of().ExpiresAt(); !at.Equal(w.now.Add(10 * time.Second)) {
		t.Errorf("a lease of 10 s is over at %v, want 10 s from %v", at, w.now)
	}
	w.refuse(errRefused, time.Hour)
	_ = w.Replace([]any{leasedRequest("8", w.now.Add(-3*time.Hour), 600, "")}, "8")
	if at := of().ExpiresAt(); !at.Equal(w.now.Add(time.Minute)) {
		t.Errorf("after an hour without news it is over at %v, want a minute from %v", at, w.now)
	}
	expired := of()
	expired.ResourceVersion = "20"
	expired.Status = nodepool.OwnedStatus{State: raydemand.RequestExpired, ObservedRequest: expired.Fingerprint(), Since: w.now.Add(-time.Minute)}
	w.Set(expired)
	if expired := of(); !expired.Expired(w.now) {
		t.Errorf("an expired request holds again until %v", expired.ExpiresAt())
	}
}

func TestALeaseHoldsForItsTimeWhateverTheClockIsSetTo(t *testing.T) {
	w := newReadingWorld(t)
	created := w.now.Add(-24 * time.Hour)
	left := func(what string, want time.Duration) {
		t.Helper()
		r, _ := w.get("ml", "a")
		if got := r.ExpiresAt().Sub(w.now); got != want {
			t.Errorf("%s: %v left, want %v", what, got, want)
		}
	}
	_ = w.Replace(nil, "5")
	w.now = w.now.Add(2 * leaseGrace)
	renewed := w.now.UTC().Format(metav1.RFC3339Micro)
	w.setClock(-time.Hour)
	_ = w.Update(leasedRequest("6", created, 600, renewed))
	left("renewed an hour ahead of this clock", 10*time.Minute)
	w.now = w.now.Add(time.Minute)
	w.setClock(time.Hour)
	left("a minute later, the clock is right again", 9*time.Minute)
	w.setClock(-time.Hour)
	_ = w.Update(leasedRequest("7", created, 600, renewed))
	left("the clock goes back, and the same renewal is reported again", 9*time.Minute)
	w.now = w.now.Add(9 * time.Minute)
	left("its time is over", 0)
}
