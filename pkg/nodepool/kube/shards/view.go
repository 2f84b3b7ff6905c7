package shards

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// ID names this member.
func (s *Shards) ID() string { return s.member.ID() }

// View is what a member knows of the division.
type View struct {
	// Started is true once this member takes part.
	Started bool
	// Shards is the number of members, with this one.
	Shards int
	// Unowned is how many RayClusters nobody decides about: no member claims them, only members claim them whose Leases
	// have expired, or this member has claimed them for longer than a Lease and does not own them.
	Unowned int
	// ReadAge is the age of the last reading that succeeded; negative before the first.
	ReadAge time.Duration
}

// View returns what was last read.
func (s *Shards) View() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := View{Started: s.started, Shards: len(s.member.Others()) + 1, Unowned: s.unowned, ReadAge: -1}
	if s.readAt >= 0 {
		v.ReadAge = s.now() - s.readAt
	}
	return v
}

// Route returns the address of the member that claims a RayCluster, "" if it has none. mine: this member does. known is
// false if none claims it.
func (s *Shards) Route(key nodepool.ClusterKey) (address string, mine, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := key.String()
	if s.holdings.Has(name) {
		return "", true, true
	}
	if r, known := s.member.Holder(name); known {
		return r.Address, false, true
	}
	mine = s.member.Claimed(name)
	return "", mine, mine
}

// Addresses returns those of the other members. complete is false while RayClusters move: then some may be in none of
// the members' answers.
func (s *Shards) Addresses() (addresses []string, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.member.Others() {
		addresses = append(addresses, r.Address)
	}
	return addresses, s.member.Settled() && s.moving == 0
}

// LastCame returns a number that changes when RayClusters come to this member.
func (s *Shards) LastCame() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came
}
