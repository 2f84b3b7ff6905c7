package kube

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// term is what this shard has written to a RayCluster. Its name is a text that nothing else in the fleet ever has. Each
// patch of a RayCluster tests the term that the object carries, and writes its own. So the terms of the writers of a
// RayCluster never interleave, whatever clocks do and however late a patch arrives.
type term struct {
	name string
	// from is the term that the first patches test, if one was tried: it may have been stored.
	from  string
	tried bool
	// lost is when another term was read since, zero for never. This one writes no more. A reading after that, which
	// confirms the slot, begins another.
	lost time.Time
}

// Fence returns the term that a patch writes to a RayCluster that carries another, "" for none, and that the patch
// tests. nodepool.ErrNotLeading: this shard must not write to it any more.
func (s *Shards) Fence(key nodepool.ClusterKey, stored string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refused := fmt.Errorf("%w: RayCluster %s was last written by shard %q", nodepool.ErrNotLeading, key, stored)
	if !s.slotOf(key).mine {
		return "", refused
	}
	t := s.terms[key]
	if t == nil {
		s.begun++
		t = &term{name: fmt.Sprintf("%s.%d", s.id, s.begun)}
		s.terms[key] = t
	}
	switch {
	case !t.lost.IsZero():
		return "", refused
	case stored == t.name:
		return t.name, nil
	case t.tried && stored != t.from:
		t.lost = time.Now()
		return "", refused
	}
	t.from, t.tried = stored, true
	return t.name, nil
}

// Enter begins a cycle of a RayCluster. mine is false if another shard owns it, or nobody yet. Otherwise the context
// ends when this shard loses the RayCluster or its right to write, and the caller must call leave at the end of the
// cycle.
func (s *Shards) Enter(ctx context.Context, key nodepool.ClusterKey) (inside context.Context, leave func(), mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.slotOf(key).mine {
		return ctx, nil, false
	}
	inside, end := context.WithCancel(ctx)
	s.cycles[key] = end
	return inside, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cycles, key)
	}, true
}

// Left returns for how long this shard may write to a RayCluster without another renewal.
func (s *Shards) Left(key nodepool.ClusterKey) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terms[key]; t != nil && !t.lost.IsZero() {
		return 0
	}
	return s.slotOf(key).left()
}

// Owns reports whether this shard decides about a RayCluster, whether it may write now or not.
func (s *Shards) Owns(key nodepool.ClusterKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotOf(key).mine
}

// Acts reports whether this shard may write to some RayClusters.
func (s *Shards) Acts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.slots {
		if s.slots[i].acts() {
			return true
		}
	}
	return false
}

// ID names this shard.
func (s *Shards) ID() string { return s.id }

// View returns whether this shard takes part, the number of shards with this one, how many RayClusters nobody decides
// about, and the age of the last reading that succeeded: negative before the first.
func (s *Shards) View() (started bool, shards, unowned int, readAge time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	readAge = -1
	if !s.readAt.IsZero() {
		readAge = time.Since(s.readAt)
	}
	return s.started, len(s.shards), s.unowned, readAge
}

// Route returns the address of the shard that holds the slot of a RayCluster, "" if it has none. mine: this shard does.
// known is false if none holds it.
func (s *Shards) Route(key nodepool.ClusterKey) (address string, mine, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.slotOf(key)
	if slot.mine || slot.holder == s.identity {
		return "", true, true
	}
	return addressIn(slot.holder), false, slot.holder != ""
}

// Addresses returns those of the other shards. complete is false while slots move, and for the time in which the others
// must have read that: then some RayClusters may be in none of the shards' answers.
func (s *Shards) Addresses() (addresses []string, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	complete = time.Since(s.movedAt) >= leaseDuration/2
	for i := range s.slots {
		slot := &s.slots[i]
		complete = complete && (slot.mine || slot.holder != "" && slot.holder != s.identity)
	}
	for _, shard := range s.shards {
		if shard != s.identity {
			addresses = append(addresses, addressIn(shard))
		}
	}
	return addresses, complete
}

// LastCame returns a number that changes when RayClusters come to this shard.
func (s *Shards) LastCame() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came
}
