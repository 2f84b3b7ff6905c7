package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// store sends a write, and reports whether it was stored.
func (s *Shards) store(ctx context.Context, write Write, asked time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Deadline/2) // one hung call must not cost the Lease
	defer cancel()
	wanted := s.lease(write, time.Now())
	var stored *coordinationv1.Lease
	var err error
	if write.Version == "" {
		stored, err = s.leases.Create(ctx, wanted, metav1.CreateOptions{})
	} else {
		stored, err = s.leases.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.member.Written(write, stored.ResourceVersion, asked)
		s.renewed()
	case apierrors.IsNotFound(err):
		s.member.Removed()
		s.drop()
	}
	// After a conflict, the reading that follows shows an earlier write of this member that was stored late.
	s.report("renewing the Leases of shards failed; without a renewal this shard stops writing", err)
	return err == nil
}

// read reads all Leases, and takes up what this member owns by them.
func (s *Shards) read(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Deadline/2)
	defer cancel()
	records, err := s.records(ctx)
	var keys []nodepool.ClusterKey
	if err == nil {
		keys, err = s.config.Clusters()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report("reading the Leases of shards failed; this shard does not see which others come and go", err)
	if err != nil {
		return false
	}
	s.readAt = s.now()
	s.member.Read(records, s.readAt)
	s.update(keys)
	return true
}

// members lists the Leases of all members from the API server itself.
func (s *Shards) members(ctx context.Context) (records []Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timing.Deadline/2)
	defer cancel()
	list, err := s.leases.List(ctx, metav1.ListOptions{LabelSelector: GroupLabel + "=" + s.config.Group})
	if err != nil {
		return nil, fmt.Errorf("listing the Leases of shards: %w", err)
	}
	for i := range list.Items {
		records = append(records, recordOf(&list.Items[i]))
	}
	return records, nil
}

// records lists the Leases of all members, with that of a leader.
func (s *Shards) records(ctx context.Context) ([]Record, error) {
	records, err := s.members(ctx)
	if err != nil {
		return nil, err
	}
	leader, err := s.leases.Get(ctx, s.config.Group, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return records, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %s: %w", s.config.Group, err)
	}
	if r, held := leaderOf(leader); held {
		records = append(records, r)
	}
	return records, nil
}

// update begins and ends terms after a reading. The caller holds mu.
func (s *Shards) update(keys []nodepool.ClusterKey) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	gained, lost := s.holdings.Update(names, s.member.Owns)
	for _, key := range lost {
		s.handOver(key)
	}
	if len(gained) > 0 {
		s.came++
	}
	for _, key := range gained {
		s.config.Changed(keyOf(key))
	}
	s.count(names)
	if len(gained)+len(lost) > 0 {
		s.config.Logger.Info("RayClusters moved between shards", "shard", s.member.ID(), "came", len(gained),
			"left", len(lost), "shards", len(s.member.Others())+1)
	}
}

// count counts the RayClusters that move, and those about which nobody decides, by the last reading. The caller holds
// mu.
func (s *Shards) count(names []string) {
	awaited := map[string]time.Duration{}
	s.moving, s.unowned = 0, 0
	for _, name := range names {
		switch {
		case s.holdings.Has(name):
		case s.member.Wants(name):
			s.moving++
			if s.member.Led() {
				continue // shards wait for the leader as long as it runs
			}
			since, known := s.awaited[name]
			if !known {
				since = s.readAt
			}
			awaited[name] = since
			if s.readAt-since > s.timing.Lease {
				s.unowned++
			}
		case !s.member.Claimed(name):
			s.moving++
			s.unowned++
		case !s.member.Served(name, s.readAt):
			s.unowned++
		}
	}
	s.awaited = awaited
}

// removeExpired removes the Leases of members that have ended. A Lease that was renewed meanwhile stays.
func (s *Shards) removeExpired(ctx context.Context) {
	s.mu.Lock()
	expired := s.member.Expired(s.now())
	s.mu.Unlock()
	var failed []error
	for _, r := range expired {
		call, cancel := context.WithTimeout(ctx, s.timing.Deadline/2)
		err := s.leases.Delete(call, r.ID, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &r.Version},
		})
		cancel()
		switch {
		case err == nil:
			s.config.Logger.Warn("a shard has ended without leaving; others take its RayClusters", "ended", r.ID)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			// It was renewed, or another shard has removed it.
		default:
			failed = append(failed, fmt.Errorf("removing Lease %s: %w", r.ID, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report("removing the Leases of shards that have ended failed; nobody decides about their RayClusters",
		errors.Join(failed...))
}

// leave gives up everything: it waits until no cycle runs, and removes the Lease.
func (s *Shards) leave() {
	s.mu.Lock()
	if s.lapse != nil {
		s.lapse.Stop()
	}
	for _, end := range s.cycles {
		end()
	}
	left := s.member.Left(s.now())
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	if !s.idle(ctx) {
		return // others take over when the Lease has expired
	}
	s.mu.Lock()
	version := s.member.Renewal().Version
	s.member.Removed()
	s.drop()
	s.mu.Unlock()
	if version == "" {
		return
	}
	err := s.leases.Delete(ctx, s.member.ID(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &version},
	})
	if err != nil {
		s.config.Logger.Warn(
			"cannot remove the Lease of this shard; others take over when it has expired",
			"error",
			err,
		)
	}
}

// idle waits until no cycle runs.
func (s *Shards) idle(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		running := len(s.cycles)
		s.mu.Unlock()
		if running == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// report logs an error with a message, if it is the first of several in a row, and then once a minute. The caller holds
// mu.
func (s *Shards) report(message string, err error) {
	if err == nil {
		delete(s.reported, message)
		return
	}
	now := s.now()
	if last, known := s.reported[message]; known && now-last < time.Minute {
		return
	}
	s.reported[message] = now
	s.config.Logger.Warn(message, "shard", s.member.ID(), "left", s.member.Left(now).String(), "error", err)
}

// keyOf reads a key that was written by String.
func keyOf(name string) nodepool.ClusterKey {
	namespace, cluster, _ := strings.Cut(name, "/")
	return nodepool.ClusterKey{Namespace: namespace, Name: cluster}
}
