package landing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// failedLaunch is a NodeClaim for which the provider has launched no machine.
type failedLaunch struct {
	Claim NodeClaim
	// At is when Heliostat saw that.
	At time.Time
}

// FailedLaunches are the latest NodeClaims for which the provider had no machine, by NodePool. Karpenter deletes such a
// claim after a second.
type FailedLaunches map[string]failedLaunch

// Note remembers that a claim got no machine, and the moment of the first time. It reports whether that is news. Claims
// that failed are noted in their order, each once, however often the same ones are seen: Karpenter creates several in a
// round.
func (f FailedLaunches) Note(now time.Time, claim NodeClaim) bool {
	known, failed := f[claim.Pool]
	order := cmp.Or(claim.CreatedAt.Compare(known.Claim.CreatedAt), strings.Compare(claim.Name, known.Claim.Name))
	if claim.Pool == "" || claim.Launched || failed && order <= 0 {
		return false
	}
	f[claim.Pool] = failedLaunch{Claim: claim, At: now}
	return true
}

// Void voids the failure of a pool that got the machine of this claim afterwards. Moments of claims are in whole
// seconds. The failed claim stays noted, because its Event outlives it.
func (f FailedLaunches) Void(claim *NodeClaim) {
	known, failed := f[claim.Pool]
	if failed && claim.Launched && !claim.LaunchedAt.Before(known.At.Truncate(time.Second)) {
		known.At = time.Time{}
		f[claim.Pool] = known
	}
}

// Before returns the failures before a moment.
func (f FailedLaunches) Before(at time.Time) FailedLaunches {
	earlier := maps.Clone(f)
	maps.DeleteFunc(earlier, func(_ string, failed failedLaunch) bool { return !failed.At.Before(at) })
	return earlier
}

// After an InsufficientCapacityError, a provider does not try the same machines for 3 minutes. It tries no more than 60
// instance types of one claim, and one capacity type (docs/reference/facts.md#karpenter-rounds).
const (
	stockMemory = 3 * time.Minute
	mostTried   = 60
)

// conclusive reports whether the claim's NodePool had no other machine to try: all of its instance types were tried, of
// a single capacity type. Otherwise Karpenter's next round may launch another one.
func (f *failedLaunch) conclusive() bool {
	return f.choices("karpenter.sh/capacity-type") == 1 && f.choices("node.kubernetes.io/instance-type") <= mostTried
}

// choices returns how many values a label of the node may have.
func (f *failedLaunch) choices(label string) int {
	for _, r := range f.Claim.Template.Requirements {
		if r.Key == label && r.Operator == "In" {
			return len(r.Values)
		}
	}
	return mostTried + 1
}

// OutOfStock returns the NodePools that have no machine for waiting pods, if no other pool may add a node for them: of
// each, the latest launch has failed since the pods wait, and another attempt would fail too. fits are all pools where
// the pods fit, failed the latest launches by pool.
func OutOfStock(now time.Time, waiting WaitingPods, fits []PoolPods, failed FailedLaunches) (names []string) {
	for i := range fits {
		pool := &fits[i]
		if pool.MayAddPods != nil && *pool.MayAddPods == 0 {
			continue
		}
		f, known := failed[pool.Pool]
		if !pool.Provisioned || !known || !f.provesFor(now, waiting) {
			return nil
		}
		names = append(names, pool.Pool)
	}
	slices.Sort(names)
	return names
}

// provesFor reports whether the failed claim would have held one of the waiting pods, so that its pool has no machine
// for them now.
func (f *failedLaunch) provesFor(now time.Time, waiting WaitingPods) bool {
	claim := &f.Claim
	return f.conclusive() && now.Sub(f.At) < stockMemory && !f.At.Before(waiting.Since) &&
		!claim.Template.refuses(waiting.Shape) && waiting.Shape.podsIn(claim.room(nil)) > 0
}
