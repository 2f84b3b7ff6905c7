package requests

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/fairshare"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// RequestsOverMemory is the code of the finding that a RayCluster has requests that do not fit into the budget of
// memory.
const RequestsOverMemory = "requests-over-memory"

const (
	// admitPause separates two divisions of the budget, so that a stream of objects is divided in steps.
	admitPause = 100 * time.Millisecond
	// rereadPause is the pause after a request that could not be read.
	rereadPause = 2 * time.Second
	// rereadFor bounds the time between two divisions of the budget while requests are read again.
	rereadFor = time.Second
	// overLogPause separates two log lines about rejected requests.
	overLogPause = time.Minute
)

// budget bounds the memory of the specs of all requests. The sum of what is kept never exceeds limit, not even while a
// list or a stream of objects arrives: a spec that does not fit is dropped, and read again once a division of the
// budget admits it. Which requests are admitted depends on the sizes, owners and ranks of all objects alone (see
// byRank), not on the order in which they arrive. Store.mu guards it.
type budget struct {
	limit int64
	// held is the sum of what is kept; without counts the requests that are not admitted, including those that are
	// still to be read.
	held    int64
	without int
	// wake has a token when the budget must be divided again.
	wake chan struct{}
}

func newBudget(limit int64) budget {
	return budget{limit: limit, wake: make(chan struct{}, 1)}
}

// take admits a request, or replaces the known one, nil for none. read says whether the first list is complete: before
// that, everything that fits is kept.
func (b *budget) take(r, known *nodepool.OwnedRequest, read bool) {
	waits := b.without > 0
	if known != nil {
		b.count(known, -1)
	}
	same := known != nil && sameRank(known, r)
	fits := b.held+r.Bytes <= b.limit
	switch {
	case same && known.Admission == nodepool.Refused:
		r.Omit(nodepool.Refused, b.limit)
	case fits && (!waits || !read || same && known.Admission == nodepool.Admitted):
		r.Admission = nodepool.Admitted
	case fits:
		r.Admission = nodepool.Undecided // and keep it until the budget is divided
	default:
		r.Omit(nodepool.Undecided, b.limit)
	}
	b.count(r, 1)
	if !same && b.without > 0 {
		b.divideAgain()
	}
}

// release frees the memory of a request.
func (b *budget) release(r *nodepool.OwnedRequest) {
	b.count(r, -1)
	if b.without > 0 {
		b.divideAgain()
	}
}

func (b *budget) count(r *nodepool.OwnedRequest, by int) {
	if r.Omitted == nil {
		b.held += int64(by) * r.Bytes
	}
	if r.Admission != nodepool.Admitted {
		b.without += by
	}
}

// divideAgain requests another division of the budget.
func (b *budget) divideAgain() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// sameRank reports whether two readings of one request are equal in everything that the division depends on.
func sameRank(a, b *nodepool.OwnedRequest) bool {
	return a.UID == b.UID && a.Bytes == b.Bytes && a.Owner == b.Owner && byRank(a, b) == 0
}

// byRank is the order in which the requests of one owner are admitted: requests that hold before those that are expired
// or being deleted, then by priority, age and name, in the order in which they are served. The objects contain all of
// it, so a restart gives the same result.
func byRank(a, b *nodepool.OwnedRequest) int {
	return cmp.Or(
		cmp.Compare(over(a), over(b)),
		cmp.Compare(b.Priority, a.Priority),
		a.Since.Compare(b.Since),
		cmp.Compare(a.ID, b.ID),
	)
}

func over(r *nodepool.OwnedRequest) int {
	if r.Deleting || r.Status.State == raydemand.RequestExpired {
		return 1
	}
	return 0
}

// admitAll divides the budget whenever something has changed while not all requests are admitted, and reads newly
// admitted requests again.
func (s *Store) admitAll(ctx context.Context) {
	var loggedAt time.Time
	before := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.budget.wake:
		}
		if !s.listed() {
			continue // the end of the first list, or of the wait for it, divides again
		}
		toRead, refused := s.divide()
		if refused != before && (refused == 0 || before == 0 || time.Since(loggedAt) >= overLogPause) {
			s.logOver(refused)
			before, loggedAt = refused, time.Now()
		}
		pause := admitPause
		if !s.rereadAll(ctx, toRead) {
			pause = rereadPause
			s.divideAgain()
		}
		if !timing.Sleep(ctx, pause) {
			return
		}
	}
}

// rereadAll reads admitted requests, and reports whether all could be read. A request that cannot be read, and others
// of its namespace, do not delay other namespaces. It stops after rereadFor, because newer requests may rank before the
// rest.
func (s *Store) rereadAll(ctx context.Context, toRead []nodepool.OwnedRequest) (all bool) {
	begun := time.Now()
	failed := map[string]bool{}
	for i := range toRead {
		r := &toRead[i]
		if ctx.Err() != nil {
			return true
		}
		if time.Since(begun) > rereadFor {
			s.divideAgain()
			return len(failed) == 0
		}
		if failed[r.Cluster.Namespace] {
			continue
		}
		if err := s.reread(ctx, *r); err != nil && ctx.Err() == nil {
			if len(failed) == 0 {
				s.log.Warn(
					"cannot read a request that fits into the memory budget",
					"namespace",
					r.Cluster.Namespace,
					"request",
					r.ID,
					"err",
					err,
				)
			}
			failed[r.Cluster.Namespace] = true
		}
	}
	return len(failed) == 0
}

// listed reports whether all readable namespaces have been read once.
func (s *Store) listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readings {
		if !r.read && !r.settled {
			return false
		}
	}
	return true
}

func (s *Store) logOver(refused int) {
	if refused == 0 {
		s.log.Info("all requests fit into the memory budget again")
		return
	}
	s.log.Warn(
		"rejecting requests because their owners have used their share of the memory for requests",
		"requests",
		refused,
		"budgetBytes",
		s.budget.limit,
	)
}

func (s *Store) divideAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.divideAgain()
}

// divide admits requests and rejects others. It returns the admitted requests that must be read again, and how many are
// rejected.
func (s *Store) divide() (toRead []nodepool.OwnedRequest, refused int) {
	var changed []nodepool.ClusterKey
	s.mu.Lock()
	admitted := s.admitted()
	for key, r := range s.objects {
		before := r.Admission
		switch is := admitted[key]; {
		case !is:
			refused++
			s.budget.count(r, -1)
			r.Omit(nodepool.Refused, s.budget.limit)
			s.budget.count(r, 1)
		case r.Omitted == nil:
			s.budget.count(r, -1)
			r.Admission = nodepool.Admitted
			s.budget.count(r, 1)
		default:
			r.Admission = nodepool.Undecided
			toRead = append(toRead, *r)
		}
		if r.Admission != before {
			changed = append(changed, r.Cluster)
			s.wake(key)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(toRead, func(a, b nodepool.OwnedRequest) int {
		return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.ID, b.ID))
	})
	s.notify(distinctKeys(changed))
	return toRead, refused
}

func distinctKeys(keys []nodepool.ClusterKey) []nodepool.ClusterKey {
	set := map[nodepool.ClusterKey]bool{}
	for _, key := range keys {
		set[key] = true
	}
	return slices.Collect(maps.Keys(set))
}

// admitted returns the requests that fit into the budget. The caller holds mu.
func (s *Store) admitted() map[requestKey]bool {
	all := slices.SortedFunc(maps.Values(s.objects), byRank)
	items := make([]fairshare.Item, len(all))
	for i, r := range all {
		items[i] = fairshare.Item{Group: r.Cluster.Namespace, Owner: r.Owner, Size: r.Bytes}
	}
	places := map[requestKey]bool{}
	for i, is := range fairshare.Admit(items, s.budget.limit) {
		if is {
			places[requestKey{all[i].Cluster.Namespace, all[i].ID}] = true
		}
	}
	return places
}

// reread reads an admitted request. The next division handles what has changed since.
func (s *Store) reread(ctx context.Context, of nodepool.OwnedRequest) error {
	ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
	defer cancel()
	object, err := s.client.Namespace(of.Cluster.Namespace).Get(ctx, of.ID, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // its watch reports that it is gone
	}
	if err != nil {
		return err
	}
	r, key := Decode(object), requestKey{of.Cluster.Namespace, of.ID}
	s.mu.Lock()
	known := s.objects[key]
	still := known != nil && known.Omitted != nil && known.Admission == nodepool.Undecided && sameRank(known, r) &&
		known.ResourceVersion == r.ResourceVersion && s.budget.held+r.Bytes <= s.budget.limit
	if still {
		s.noteRenewal(r, known)
		s.budget.count(known, -1)
		r.Admission = nodepool.Admitted
		s.budget.count(r, 1)
		s.objects[key] = r
		s.wake(key)
	}
	s.mu.Unlock()
	if still {
		s.notify([]nodepool.ClusterKey{r.Cluster})
		return nil
	}
	s.Set(r)
	s.divideAgain()
	return nil
}

// addMemory adds to a RayCluster which of its requests are rejected, and that nothing may be removed while an admitted
// one is still to be read.
func (s *Store) addMemory(cluster *nodepool.Cluster) {
	refused, undecided, bytes := 0, 0, int64(0)
	for i := range cluster.Owned {
		switch r := &cluster.Owned[i]; r.Admission {
		case nodepool.Refused:
			refused++
			bytes += r.Bytes
		case nodepool.Undecided:
			undecided++
		}
	}
	if undecided > 0 && cluster.OwnedUnknown == "" {
		cluster.OwnedUnknown = fmt.Sprintf("%d ResourceRequests are being read", undecided)
	}
	if refused > 0 {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code:     RequestsOverMemory,
			Severity: raydemand.Warning,
			Object:   "RayCluster " + cluster.Key.String(),
			Seen: fmt.Sprintf(
				"%d of %d requests of owners, %d KiB of memory",
				refused,
				len(cluster.Owned),
				bytes>>10,
			),
			Why: fmt.Sprintf(
				"their owners have used their share of the %d KiB of memory for the requests of all namespaces, so "+
					"these requests do not count, and idle workers that only they hold are removed",
				s.budget.limit>>10,
			),
			Fix: "delete unneeded ResourceRequests, use fewer different bundles in them, or raise serve " +
				"--request-memory",
		})
	}
}

// Memory is the memory that requests use.
type Memory struct {
	// Budget and Held are bytes; Refused counts the requests that do not fit into the budget.
	Budget, Held int64
	Refused      int
}

// Memory returns the memory that requests use now.
func (s *Store) Memory() Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Memory{Budget: s.budget.limit, Held: s.budget.held, Refused: s.budget.without}
}
