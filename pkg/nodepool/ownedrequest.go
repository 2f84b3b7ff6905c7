package nodepool

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Errors about requests of owners.
var (
	// ErrNoRequests says that requests of owners cannot be kept here; the error around it says why.
	ErrNoRequests = errors.New("requests of owners are not available")
	// ErrNoRequest says that there is no such request.
	ErrNoRequest = errors.New("no such request")
	// ErrPrecondition says that a request is not as the caller says that he knows it.
	ErrPrecondition = errors.New("the request has changed")
	// ErrRequestElsewhere says that a request of this name asks for capacity of another RayCluster of the namespace.
	ErrRequestElsewhere = errors.New("a request of this name is for another RayCluster")
	// ErrRequestRefused says that the API server does not accept a request; the error around it says what is wrong.
	ErrRequestRefused = errors.New("the request is refused")
	// ErrRequestsPaused says that requests can be kept here, but not now; the error around it says why.
	ErrRequestsPaused = errors.New("requests of owners cannot be written now")
	// ErrRequestConflict says that others wrote a request at the same time, again and again. It is an ErrConflict.
	ErrRequestConflict error = requestConflict{}
)

type requestConflict struct{}

func (requestConflict) Error() string { return "others change the request at the same time" }

func (requestConflict) Is(target error) bool { return target == ErrConflict }

// ExpiredKept is for how long a request stays after its lease is over, so that its owner can see why.
const ExpiredKept = time.Hour

// OwnedRequest is a request of an owner as Kubernetes keeps it, a ResourceRequest.
type OwnedRequest struct {
	raydemand.Owned
	// Cluster is the RayCluster that it asks for capacity of; ID is the object's name in the same namespace.
	Cluster ClusterKey
	// UID and ResourceVersion are those of the object read, ClusterUID that of the RayCluster that owns it; empty while none does.
	UID, ResourceVersion, ClusterUID string
	Generation                       int64
	// LeaseSeconds is for how long it holds after RenewedAt; 0 is until it is deleted.
	LeaseSeconds int32
	// RenewTime is when the lease was last renewed as whoever did it says; zero where nobody says so.
	RenewTime time.Time
	// RenewedAt is when the lease was last renewed, or began; never later than when that was first seen.
	RenewedAt time.Time
	// SeenAt is how long the process had run when it first saw that renewal: time that no setting of a clock changes.
	SeenAt time.Duration
	// HeldUntil is until when a lease lasts at least, because renewals could not be seen for a while; zero where they could.
	HeldUntil time.Time
	Deleting  bool
	// Unreadable says why it cannot be understood, or is empty. It is then not counted.
	Unreadable string
	// Trace is the W3C traceparent of the call that asked for it and when that was, `<traceparent> <RFC 3339>`; empty where none is kept.
	Trace  string
	Status OwnedStatus
	// Bytes is the Footprint of the whole request, Admission whether the budget of memory has room for it. Omitted
	// stands for its spec where that is not kept; nil where it is.
	Bytes     int64
	Admission Admission
	Omitted   *OmittedSpec
}

// OwnedStatus is what became of a request, as it is kept in its status.
type OwnedStatus struct {
	// ObservedRequest is the Fingerprint, ObservedGeneration the generation of what the rest was found for.
	ObservedRequest    string
	ObservedGeneration int64
	State              raydemand.RequestState
	// Since is when State began.
	Since         time.Time
	Code, Message string
	Groups        []OwnedGroup
	// Pods are names of pods that serve it, bounded.
	Pods []string
	// ExpectedAt is when the last pod that it waits for is expected to have joined; zero where not known.
	ExpectedAt time.Time
	// SatisfiedSince and ExpiredSince are when these conditions last changed.
	SatisfiedSince, ExpiredSince time.Time
}

// OwnedGroup counts the pods of a group that serve a request.
type OwnedGroup struct {
	Name string
	Pods int32
}

// ExpiresAt is when the lease is over; zero for a request that holds until it is deleted.
func (r *OwnedRequest) ExpiresAt() time.Time {
	if r.LeaseSeconds <= 0 {
		return time.Time{}
	}
	if at := r.leaseEnd(); at.After(r.HeldUntil) {
		return at
	}
	return r.HeldUntil
}

func (r *OwnedRequest) leaseEnd() time.Time {
	return r.RenewedAt.Add(time.Duration(r.LeaseSeconds) * time.Second)
}

// ReportedExpired reports whether the status says that the lease is over, and nobody has renewed it since.
func (r *OwnedRequest) ReportedExpired() bool {
	return r.Status.State == raydemand.RequestExpired && r.Status.ObservedRequest == r.Fingerprint() && r.RenewedAt.Before(r.Status.Since)
}

// DeletionTime is when a request whose lease is over is deleted: ExpiredKept after its owner was first told. Zero before that. What the owner's clock says
// does not matter.
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

// Counts reports whether the request is one of this RayCluster and holds now. One that was made for a RayCluster of the same name that is gone
// does not, nor does one that the budget of memory has no room for.
func (r *OwnedRequest) Counts(clusterUID string, now time.Time) bool {
	return r.Admission == Admitted && r.Unreadable == "" && !r.Deleting && !r.Expired(now) && (r.ClusterUID == "" || r.ClusterUID == clusterUID)
}

// Fingerprint tells what is asked for, and by whom; a renewal does not change it.
func (r *OwnedRequest) Fingerprint() string {
	if r.Omitted != nil {
		return r.Omitted.Fingerprint
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %d %v %d\n", r.Owner, r.Priority, r.AllOrNothing, r.LeaseSeconds)
	for _, request := range r.Requests {
		fmt.Fprintf(hash, "%d %q", request.Count, request.Bundle)
		for _, selector := range request.Selectors {
			fmt.Fprintf(hash, " %q", selector.String())
		}
		if wish := request.Slice; wish != nil {
			fmt.Fprintf(hash, " %d %v %q", wish.Memory, wish.ComputeFraction, wish.Isolation)
		}
		fmt.Fprintln(hash)
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}

// Version tells one spec of a request from another. What became of it, and renewals of its lease, do not change it.
func (r *OwnedRequest) Version() string {
	if r.Unreadable != "" {
		return fmt.Sprintf("%s.%d", r.UID, r.Generation)
	}
	return r.UID + "." + r.Fingerprint()
}

// Current is the status where it is about what is asked for now; else the request waits to be looked at. One that the
// budget of memory refuses says so at once.
func (r *OwnedRequest) Current() OwnedStatus {
	if r.Admission == Refused && r.Status.State != raydemand.RequestExpired {
		status := OverMemory(r)
		if r.Status.Code == status.Code {
			status.Since = r.Status.Since
		}
		return status
	}
	if r.Status.State != "" && r.Status.ObservedRequest == r.Fingerprint() {
		return r.Status
	}
	return OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeNotLookedAt, Message: "no plan has taken it in yet"}
}

// SatisfiedSince is since when its owner is told that workers have room for all that he asks for now; zero where he is told something else.
func (r *OwnedRequest) SatisfiedSince() time.Time {
	if r.Status.State != raydemand.RequestSatisfied || r.Status.ObservedRequest != r.Fingerprint() {
		return time.Time{}
	}
	return r.Status.Since
}

// SameOutcome reports whether two statuses say the same but for what is only counted or estimated: state, code and whom they are about.
func (s OwnedStatus) SameOutcome(other OwnedStatus) bool {
	return s.State == other.State && s.Code == other.Code && s.ObservedRequest == other.ObservedRequest
}

// expectedSlack is by how much an expectation may be off before it is told anew.
const expectedSlack = 10 * time.Second

// Equal reports whether two statuses say the same. Generations, and expectations that differ by no more than expectedSlack, do not count.
func (s OwnedStatus) Equal(other OwnedStatus) bool {
	near := func(a, b time.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= expectedSlack }
	return s.SameOutcome(other) && s.Message == other.Message && slices.Equal(s.Groups, other.Groups) && slices.Equal(s.Pods, other.Pods) &&
		near(s.ExpectedAt, other.ExpectedAt)
}

// OwnedUpdate is what shall be written to a request: its status, who owns the object, or that it shall go. UID guards against another of the same
// name; ResourceVersion is that of the object as it was looked at, so that a renewal meanwhile wins over its deletion.
type OwnedUpdate struct {
	Namespace, Name, UID, ResourceVersion string
	Status                                *OwnedStatus
	// Adopt makes the RayCluster own the object, so that it goes with it.
	Adopt *ClusterReference
	// Delete removes the object.
	Delete bool
}

// ClusterReference names one RayCluster for good.
type ClusterReference struct{ Name, UID string }
