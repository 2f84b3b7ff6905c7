package nodepool

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// DefaultRequestMemory is the memory budget for all owned requests together, in bytes.
const DefaultRequestMemory = 64 << 20

// Admission says whether the memory budget has room for a request.
type Admission int

// Admitted: the request is kept whole. Undecided: it is not decided yet, or its spec has yet to be read. Refused: other
// requests of its owner come first and use the owner's share.
const (
	Admitted Admission = iota
	Undecided
	Refused
)

// OmittedSpec replaces the spec of a request that is not kept in memory.
type OmittedSpec struct {
	// Fingerprint is that of the whole request; Bundles is its number of bundles.
	Fingerprint string
	Bundles     int
	// Budget is the memory budget for all requests, in bytes.
	Budget int64
}

// What a request takes in memory, in bytes, rounded up: its fields and its places in the indexes; a bundle; a map up to
// its first eight entries and each further eight; an alternative of labels; a constraint; a string in addition to its
// characters.
const (
	requestBytes  = 2048
	bundleBytes   = 128
	mapBytes      = 48
	entriesBytes  = 208
	selectorBytes = 24
	labelBytes    = 64
	stringBytes   = 16
	sliceBytes    = 48
)

// Footprint estimates the memory of a request that is kept whole, in bytes. It depends only on what is requested, so
// that all processes compute the same value; the status has no part in it.
func (r *OwnedRequest) Footprint() int64 {
	bytes := requestBytes + len(r.Owner) + len(r.ID) + len(r.Trace) + len(r.Cluster.Namespace) + len(r.Cluster.Name)
	for i := range r.Requests {
		bytes += bundleFootprint(&r.Requests[i])
	}
	return int64(bytes)
}

func bundleFootprint(request *raydemand.Request) int {
	// A map grows before its last eighth is used.
	bytes := bundleBytes + mapBytes + entriesBytes*max(1, (len(request.Bundle)+6)/7)
	for name := range request.Bundle {
		bytes += len(name)
	}
	for _, selector := range request.Selectors {
		bytes += selectorBytes
		for _, constraint := range selector {
			bytes += labelBytes + len(constraint.Key)
			for _, value := range constraint.Values {
				bytes += stringBytes + len(value)
			}
		}
	}
	if request.Slice != nil {
		bytes += sliceBytes
	}
	return bytes
}

// Omit drops what takes memory, and keeps what identifies the request, ends its lease and determines its status.
func (r *OwnedRequest) Omit(as Admission, budget int64) {
	if r.Omitted == nil {
		r.Omitted = &OmittedSpec{Fingerprint: r.Fingerprint(), Bundles: len(r.Requests), Budget: budget}
	}
	r.Admission, r.Requests, r.Trace = as, nil, ""
	r.Status.Groups, r.Status.Pods = nil, nil
}

// OverMemory is the status of a request that the memory budget refuses. Its message depends only on the size of the
// request and of the budget, so that other requests do not cause writes.
func OverMemory(r *OwnedRequest) OwnedStatus {
	return OwnedStatus{State: raydemand.RequestCapped, Code: raydemand.CodeOverMemory,
		Message: fmt.Sprintf("it does not count, because it takes %s of memory, and the requests of %q in namespace "+
			"%s use their share of the %s for all requests: delete requests of this owner, ask for fewer different "+
			"bundles, or raise --request-memory",
			mebibytes(r.Bytes), shortOwner(r.Owner), r.Cluster.Namespace, mebibytes(r.Omitted.Budget))}
}

func shortOwner(owner string) string {
	if runes := []rune(owner); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return owner
}

// mebibytes formats an amount of memory: 12 KiB, 1.5 MiB, 64 MiB.
func mebibytes(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
