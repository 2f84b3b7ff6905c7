package requests

import (
	"cmp"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// RequestsForbidden is the code of the finding that ResourceRequests have never been readable, so that Heliostat does
// not wait for them.
const RequestsForbidden = "requests-forbidden"

const (
	// retryPause separates two attempts while requests cannot be read.
	retryPause = 2 * time.Second
	// absentPatience is for how long discovery must have shown, at least twice, that there are no ResourceRequests.
	absentPatience = time.Second
	// refusedPatience is how long a first read may be rejected before it counts as a right that was never granted: an
	// API server that has just started rejects everyone for some seconds.
	refusedPatience = time.Minute
	// leaseGrace is the minimum that remains of a lease once its object is readable again: until then no renewal could
	// be seen.
	leaseGrace = time.Minute
)

// Why requests cannot be read.
const (
	notReadYet   = "ResourceRequests have not been read yet"
	notInstalled = "the CustomResourceDefinition resourcerequests.heliostat.dev is not installed"
	notGranted   = "Heliostat may not list and watch resourcerequests.heliostat.dev"
	notFound     = "the API server does not find resourcerequests.heliostat.dev at the moment"
)

// reading is the state of one watch. Unknown requests never count as no requests: only discovery proves that there are
// none, twice, or a right that this process never had.
type reading struct {
	// why nothing new is known; empty while the watch works.
	why string
	// read: it was read once in this process's life; readAt is the uptime of the first reading after an interruption.
	read   bool
	readAt time.Duration
	// settled: there are none, or this process may not read them, so nothing waits for them.
	settled bool
	// since is when the API server began to answer the same; of notFound, when discovery began to say that too, zero
	// until then.
	since time.Time
}

// succeed notes a whole list, and reports whether the state changed.
func (r *reading) succeed(uptime time.Duration) bool {
	late := r.why != ""
	if late {
		r.readAt = uptime
	}
	*r = reading{read: true, readAt: r.readAt}
	return late
}

// fail notes a failed read. absent: discovery says that there are no ResourceRequests.
func (r *reading) fail(now time.Time, err error, absent bool) {
	why := err.Error()
	switch {
	case apierrors.IsForbidden(err):
		why = notGranted
	case apierrors.IsNotFound(err):
		why = notFound
	}
	if before := r.why; why != before && !(why == notFound && before == notInstalled) {
		r.since = time.Time{}
	}
	if why == notFound && !absent {
		r.since = time.Time{}
	} else if r.since.IsZero() {
		r.since = now
	}
	r.why, r.settled = why, why == notGranted && !r.read && now.Sub(r.since) >= refusedPatience
	if why == notFound && absent && now.Sub(r.since) >= absentPatience {
		// Objects of a new definition count as a first reading.
		r.why, r.settled, r.read = notInstalled, true, false
	}
}

// unknown returns why it is unknown whether there are requests; otherwise "".
func (r *reading) unknown() string {
	if r.settled {
		return ""
	}
	return r.why
}

// unavailable returns nil once requests were read; but knowing none means nothing while their kind is not found. Until
// then it returns nodepool.ErrRequestsPaused while reading may still succeed, and nodepool.ErrNoRequests if it will
// not.
func (r *reading) unavailable(known int) error {
	switch {
	case r.why == "", r.read && (known > 0 || r.why != notFound):
		return nil
	case !r.settled:
		return fmt.Errorf("%w: %s", nodepool.ErrRequestsPaused, r.why)
	}
	return fmt.Errorf("%w: %s", nodepool.ErrNoRequests, r.why)
}

// AddTo adds to a cluster its requests, or why they are unknown.
func (s *Store) AddTo(cluster *nodepool.Cluster) {
	if s == nil {
		return
	}
	cluster.Owned = s.decidable(cluster.Key)
	s.mu.Lock()
	r := *s.readingOf(cluster.Key.Namespace)
	s.mu.Unlock()
	cluster.OwnedUnknown = r.unknown()
	if r.settled && r.why == notGranted {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code:     RequestsForbidden,
			Severity: raydemand.Warning,
			Object:   "RayCluster " + cluster.Key.String(),
			Why: "this process may not list and watch resourcerequests.heliostat.dev, so ResourceRequests do " +
				"not count and their idle workers are removed",
			Fix: "grant it get, list, watch, create, patch and delete on resourcerequests.heliostat.dev, as the " +
				"chart does",
		})
	}
}

// decidable lists the requests for one RayCluster as they are written, once its whole namespace has been read. Before
// that, the end of their leases is not known.
func (s *Store) decidable(key nodepool.ClusterKey) []nodepool.OwnedRequest {
	s.mu.Lock()
	read := s.readingOf(key.Namespace).read
	s.mu.Unlock()
	if !read {
		return nil
	}
	return s.Of(key)
}

// readingOf returns the state of the watch that covers a namespace. The caller holds mu.
func (s *Store) readingOf(namespace string) *reading {
	unwatched := &reading{why: "namespace " + namespace + " is not watched", settled: true}
	return cmp.Or(s.readings[namespace], s.readings[allNamespaces], unwatched)
}

// withGrace sets when a lease began and its earliest end, as far as this process could see renewals. An expired request
// stays expired. The caller holds mu.
func (s *Store) withGrace(r nodepool.OwnedRequest) nodepool.OwnedRequest {
	r.RenewedAt, r.HeldUntil = s.leaseStart(&r), time.Time{}
	reading := s.readingOf(r.Cluster.Namespace)
	if r.LeaseSeconds > 0 && reading.read && !r.ReportedExpired() {
		r.HeldUntil = s.timeAt(reading.readAt).Add(min(time.Duration(r.LeaseSeconds)*time.Second, leaseGrace))
	}
	return r
}

// timeAt converts an uptime into a time of the current clock.
func (s *Store) timeAt(uptime time.Duration) time.Time {
	return s.now().Add(uptime - s.uptime()).Round(0)
}

// noteRenewal notes when this process first saw a renewal. The caller holds mu.
func (s *Store) noteRenewal(r, known *nodepool.OwnedRequest) {
	r.SeenAt = s.uptime()
	if known != nil && known.UID == r.UID && known.RenewTime.Equal(r.RenewTime) {
		r.SeenAt = known.SeenAt
	}
}

// leaseStart returns when a lease began, no later than when it was first seen: a clock that is ahead must not extend
// it. Changes of this machine's own clock have no effect.
func (s *Store) leaseStart(r *nodepool.OwnedRequest) time.Time {
	if seen := s.timeAt(r.SeenAt); r.RenewedAt.After(seen) {
		return seen
	}
	return r.RenewedAt
}
