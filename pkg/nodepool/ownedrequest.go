package nodepool

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Errors about owned requests.
var (
	// ErrNoRequests means that owned requests cannot be stored here; the error that wraps it says why.
	ErrNoRequests = errors.New("owned requests are not available")
	// ErrNoRequest means that the request does not exist.
	ErrNoRequest = errors.New("no such request")
	// ErrRequestElsewhere means that a request with this name is for another RayCluster of the namespace.
	ErrRequestElsewhere = errors.New("a request with this name is for another RayCluster")
	// ErrRequestRefused means that the API server does not accept a request; the error that wraps it says what is
	// wrong.
	ErrRequestRefused = errors.New("the request is refused")
	// ErrRequestsPaused means that requests can be stored here, but not now; the error that wraps it says why.
	ErrRequestsPaused = errors.New("owned requests cannot be written now")
	// ErrRequestConflict means that others wrote a request at the same time, repeatedly. It is an ErrConflict.
	ErrRequestConflict error = requestConflict{}
)

type requestConflict struct{}

func (requestConflict) Error() string { return "others change the request at the same time" }

func (requestConflict) Is(target error) bool { return target == ErrConflict }

// MaxRequests is how many valid requests a namespace gets over REST. A namespace has about one request for each job
// that runs in it. A ResourceQuota can limit those that are written otherwise.
const MaxRequests = 400

// ExpiredKept is how long a request remains after its lease is over, so that its owner can see why it expired.
const ExpiredKept = time.Hour

// OwnedRequest is a request with an owner, stored in Kubernetes as a ResourceRequest.
type OwnedRequest struct {
	raydemand.Owned
	// Cluster is the RayCluster whose capacity it requests; ID is the object's name in the same namespace.
	Cluster ClusterKey
	// UID and ResourceVersion are those of the object that was read. ClusterUID is that of the RayCluster that owns it;
	// empty while none does.
	UID, ResourceVersion, ClusterUID string
	Generation                       int64
	// LeaseSeconds is how long it is valid after RenewedAt; 0 means until it is deleted.
	LeaseSeconds int32
	// RenewTime is when the lease was last renewed, according to whoever renewed it; zero if not given.
	RenewTime time.Time
	// RenewedAt is when the lease was last renewed, or began; never later than when the renewal was first seen.
	RenewedAt time.Time
	// SeenAt is how long the process had run when it first saw that renewal. Clock changes do not affect it.
	SeenAt time.Duration
	// HeldUntil is until when the lease lasts at least, because renewals could not be seen for a while; zero otherwise.
	HeldUntil time.Time
	Deleting  bool
	// Unreadable says why the object cannot be read, or which limit it exceeds, or is empty. An unreadable request does
	// not count.
	Unreadable string
	Status     OwnedStatus
}

// OwnedStatus is the status of a request, as stored in its object.
type OwnedStatus struct {
	// ObservedRequest is the Fingerprint and ObservedGeneration the generation that the rest describes.
	ObservedRequest    string
	ObservedGeneration int64
	State              raydemand.RequestState
	// Since is when State began.
	Since         time.Time
	Code, Message string
	Groups        []OwnedGroup
	// Pods are names of pods that serve it, a limited number.
	Pods []string
	// SatisfiedSince and ExpiredSince are when these conditions last changed.
	SatisfiedSince, ExpiredSince time.Time
}

// OwnedGroup counts the pods of a group that serve a request.
type OwnedGroup struct {
	Name string
	Pods int32
}

// ExpiresAt is when the lease is over; zero for a request that is valid until it is deleted.
func (r *OwnedRequest) ExpiresAt() time.Time {
	if r.LeaseSeconds <= 0 {
		return time.Time{}
	}
	if at := r.RenewedAt.Add(time.Duration(r.LeaseSeconds) * time.Second); at.After(r.HeldUntil) {
		return at
	}
	return r.HeldUntil
}

// ReportedExpired reports whether the status says that the lease is over and nobody has renewed it since.
func (r *OwnedRequest) ReportedExpired() bool {
	return r.Status.State == raydemand.RequestExpired && r.Status.ObservedRequest == r.Fingerprint() &&
		r.RenewedAt.Before(r.Status.Since)
}

// DeletionTime is when a request whose lease is over is deleted: ExpiredKept after its status first said so; zero
// before that. The owner's clock does not matter.
func (r *OwnedRequest) DeletionTime() time.Time {
	if !r.ReportedExpired() {
		return time.Time{}
	}
	return r.Status.Since.Add(ExpiredKept)
}

// Expired reports whether the lease is over.
func (r *OwnedRequest) Expired(now time.Time) bool {
	at := r.ExpiresAt()
	return !at.IsZero() && !now.Before(at)
}

// Valid reports whether the request can be read and is in force.
func (r *OwnedRequest) Valid(now time.Time) bool {
	return r.Unreadable == "" && !r.Deleting && !r.Expired(now)
}

// Counts reports whether the request counts for this RayCluster now. One for a deleted RayCluster of the same name does
// not count.
func (r *OwnedRequest) Counts(clusterUID string, now time.Time) bool {
	return r.Valid(now) && (r.ClusterUID == "" || r.ClusterUID == clusterUID)
}

// Fingerprint identifies what is requested, and by whom; a renewal does not change it.
func (r *OwnedRequest) Fingerprint() string {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %d %v %d\n", r.Owner, r.Priority, r.AllOrNothing, r.LeaseSeconds)
	for _, request := range r.Requests {
		fmt.Fprintf(hash, "%d %q", request.Count, request.Bundle)
		for _, selector := range request.Selectors {
			fmt.Fprintf(hash, " %q", selector.String())
		}
		if required := request.Slice; required != nil {
			fmt.Fprintf(hash, " %d %v %q", required.Memory, required.ComputeFraction, required.Isolation)
		}
		fmt.Fprintln(hash)
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}

// Excluded returns the status of a request that no plan considers, because it cannot be read.
func (r *OwnedRequest) Excluded() (status OwnedStatus, excluded bool) {
	return OwnedStatus{State: raydemand.RequestImpossible, Code: raydemand.CodeUnreadable, Message: r.Unreadable},
		r.Unreadable != ""
}

// Current returns the status if it describes the current spec; otherwise the request waits for a plan. A request that
// no plan considers says so at once.
func (r *OwnedRequest) Current() OwnedStatus {
	described := r.Status.State != "" && r.Status.ObservedRequest == r.Fingerprint()
	if status, excluded := r.Excluded(); excluded && r.Status.State != raydemand.RequestExpired {
		if described && r.Status.Code == status.Code {
			status.Since = r.Status.Since
		}
		return status
	}
	if described {
		return r.Status
	}
	return OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeNotLookedAt,
		Message: "no plan has taken it in yet"}
}

// SatisfiedSince is since when the status has said that workers have room for the whole current request; zero if it
// says something else.
func (r *OwnedRequest) SatisfiedSince() time.Time {
	if r.Status.State != raydemand.RequestSatisfied || r.Status.ObservedRequest != r.Fingerprint() {
		return time.Time{}
	}
	return r.Status.Since
}

// SameOutcome reports whether two statuses say the same except for counts and estimates: state, code and affected
// groups and pods.
func (s OwnedStatus) SameOutcome(other OwnedStatus) bool {
	return s.State == other.State && s.Code == other.Code && s.ObservedRequest == other.ObservedRequest
}

// Equal reports whether two statuses say the same. Generations do not count.
func (s OwnedStatus) Equal(other OwnedStatus) bool {
	return s.SameOutcome(other) && s.Message == other.Message && slices.Equal(s.Groups, other.Groups) &&
		slices.Equal(s.Pods, other.Pods)
}

// OwnedUpdate is what is to be written to a request: its status, its owner, or its deletion. UID guards against another
// object of the same name. ResourceVersion is that of the object that was read, so that a renewal meanwhile wins over
// the deletion.
type OwnedUpdate struct {
	Namespace, Name, UID, ResourceVersion string
	Status                                *OwnedStatus
	// Adopt makes the RayCluster own the object, so that it is deleted with it.
	Adopt *ClusterReference
	// Delete deletes the object.
	Delete bool
}

// ClusterReference identifies one RayCluster for its lifetime.
type ClusterReference struct{ Name, UID string }
