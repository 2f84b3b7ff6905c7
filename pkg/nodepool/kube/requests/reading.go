package requests

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// RequestsForbidden is the code of the finding that requests of owners have never been readable and are not waited for.
const RequestsForbidden = "requests-forbidden"

const (
	// unsettledPause separates two looks while it is not known whether there are requests of owners, settledPause two looks once it is.
	unsettledPause = 2 * time.Second
	settledPause   = 5 * time.Second
	// proofsOfAbsence is how often discovery must have shown, doubtPause apart, that there are no ResourceRequests.
	proofsOfAbsence = 2
	// refusedPatience is for how long a first reading may be refused before it counts as a right that was never granted: an API server that
	// has just started refuses everybody for some seconds.
	refusedPatience = time.Minute
	// leaseGrace is what a lease has left at least once its object is read again: nobody could be seen to renew it before.
	leaseGrace = time.Minute
)

// Why requests of owners are not read.
const (
	notReadYet   = "ResourceRequests have not been read yet"
	notInstalled = "the CustomResourceDefinition resourcerequests.heliostat.dev is not installed"
	notGranted   = "Heliostat may not list and watch resourcerequests.heliostat.dev"
	notFound     = "the API server does not find resourcerequests.heliostat.dev at the moment"
)

// reading is what one watch knows. What is not known of requests is never taken for there being none: only discovery proves that, twice, or a right
// that this process never had.
type reading struct {
	// why there is nothing new to tell; empty while there is.
	why string
	// read: it was read once in this process's life; readAt is how long that had run when it was, for the first time since it was not.
	read   bool
	readAt time.Duration
	// settled: there are none, or they are not ours to read, so nobody waits for them.
	settled bool
	// foreign: no watch covers the namespace.
	foreign bool
	proofs  int
	proofAt time.Time
	// refusedAt is since when it has been refused without another answer in between.
	refusedAt time.Time
}

// succeed notes a whole list, and reports whether that is news.
func (r *reading) succeed(uptime time.Duration) bool {
	late := r.why != ""
	if late {
		r.readAt = uptime
	}
	*r = reading{read: true, readAt: r.readAt}
	return late
}

// fail notes an answer that was no reading. known says what discovery has: nil is not asked, or no answer.
func (r *reading) fail(now time.Time, err error, known *bool) {
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	switch {
	case !refused:
		r.why, r.refusedAt = err.Error(), time.Time{}
	case apierrors.IsForbidden(err):
		r.why = notGranted
	default:
		r.why = notFound
	}
	if refused && r.refusedAt.IsZero() {
		r.refusedAt = now
	}
	absent := apierrors.IsNotFound(err) && known != nil && !*known
	if !absent {
		r.proofs = 0
	} else if r.proofs == 0 || now.Sub(r.proofAt) >= unsettledPause/2 {
		r.proofs, r.proofAt = r.proofs+1, now
	}
	neverGranted := !r.read && refused && now.Sub(r.refusedAt) >= refusedPatience
	r.settled = r.proofs >= proofsOfAbsence || neverGranted
	if r.proofs >= proofsOfAbsence {
		// What comes with a new definition is as if it were read for the first time.
		r.why, r.read = notInstalled, false
	}
}

// unknown is why it is not known whether there are requests; empty where it is.
func (r *reading) unknown() string {
	if r.settled {
		return ""
	}
	return r.why
}

func (r *reading) pause() time.Duration {
	if r.settled {
		return settledPause
	}
	return unsettledPause
}

// unavailable is nil once requests were read; but that none are known means nothing while their kind is not found. Until then it is
// nodepool.ErrRequestsPaused while that may still come, and nodepool.ErrNoRequests where it will not.
func (r *reading) unavailable(known int) error {
	switch {
	case r.why == "", r.read && (known > 0 || r.why != notFound):
		return nil
	case !r.settled && !r.foreign:
		return fmt.Errorf("%w: %s", nodepool.ErrRequestsPaused, r.why)
	}
	return fmt.Errorf("%w: %s", nodepool.ErrNoRequests, r.why)
}

// AddTo gives a cluster that was just read its requests, or says that they are not known.
func (s *Store) AddTo(cluster *nodepool.Cluster) {
	cluster.Owned = s.decidable(cluster.Key)
	s.mu.Lock()
	r := *s.readingOf(cluster.Key.Namespace)
	s.mu.Unlock()
	cluster.OwnedUnknown = r.unknown()
	s.addMemory(cluster)
	if r.settled && r.why == notGranted {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: RequestsForbidden, Severity: raydemand.Warning, Object: "RayCluster " + cluster.Key.String(),
			Why: "this process may not list and watch resourcerequests.heliostat.dev, so what owners ask for by ResourceRequests is not counted and their workers are taken away when idle",
			Fix: "grant it get, list, watch, create, patch and delete on resourcerequests.heliostat.dev, as the chart does",
		})
	}
}

// decidable lists the requests for one RayCluster as they are written, once all of its namespace have been read. Until
// then they are kept as they come, but neither which have a place nor how long their leases last at least is known.
func (s *Store) decidable(key nodepool.ClusterKey) []nodepool.OwnedRequest {
	s.mu.Lock()
	read := s.readingOf(key.Namespace).read
	s.mu.Unlock()
	if !read {
		return nil
	}
	return s.Of(key)
}

// readingOf is that of the watch that covers a namespace. The caller holds mu.
func (s *Store) readingOf(namespace string) *reading {
	if r := s.readings[namespace]; r != nil {
		return r
	}
	if r := s.readings[allNamespaces]; r != nil {
		return r
	}
	return &reading{why: "namespace " + namespace + " is not watched", foreign: true}
}

// withGrace tells when a lease began and how long it lasts at least, as far as this process could see renewals. One that was told to be over stays
// so. The caller holds mu.
func (s *Store) withGrace(r nodepool.OwnedRequest) nodepool.OwnedRequest {
	r.RenewedAt, r.HeldUntil = s.leaseStart(&r), time.Time{}
	reading := s.readingOf(r.Cluster.Namespace)
	if r.LeaseSeconds > 0 && reading.read && !r.ReportedExpired() {
		r.HeldUntil = s.timeAt(reading.readAt).Add(min(time.Duration(r.LeaseSeconds)*time.Second, leaseGrace))
	}
	return r
}

// timeAt is when the process had run for so long, by the clock as it is set now.
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

// leaseStart lets a lease begin no later than when it was first seen: a clock that is ahead must not make it longer. How long ago that was does not
// change with this machine's own clock, which may be set meanwhile.
func (s *Store) leaseStart(r *nodepool.OwnedRequest) time.Time {
	if seen := s.timeAt(r.SeenAt); r.RenewedAt.After(seen) {
		return seen
	}
	return r.RenewedAt
}

// knows asks discovery whether the API server has ResourceRequests; nil is no answer.
func knows(client discovery.ServerResourcesInterface) func(context.Context) *bool {
	return func(context.Context) *bool {
		list, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		if apierrors.IsNotFound(err) {
			return new(bool)
		}
		if err != nil {
			return nil
		}
		found := false
		for i := range list.APIResources {
			found = found || list.APIResources[i].Kind == v1alpha1.Kind
		}
		return &found
	}
}
