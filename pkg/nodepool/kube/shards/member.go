package shards

import (
	"slices"
	"time"
)

// Timing is how long a Lease counts. A member acts for Deadline after it asked for its last renewal. Others remove its
// Lease when they have seen it unchanged for Lease. The difference is the margin: a call that began before the deadline
// may end in it.
type Timing struct{ Lease, Deadline time.Duration }

// Member is one member's knowledge: its own record, what it read of the others, and since when that has not changed.
//
// It may act on a key if its record claims the key, and a list that was read after the claim was written shows no other
// claim. Of two members that claim the same key, the one that wrote later reads the claim of the other. A member gives
// up a claim only after it has stopped to act on the key, and loses its record only after its deadline.
type Member struct {
	id     string
	timing Timing
	most   int

	// version is that of its record; "" while it has none, or does not know it.
	version string
	// stored are the members in its record. unanswered are those of writes that may still be stored, and intended those
	// of the next write; nil for none.
	stored     []string
	unanswered [][]string
	intended   []string
	// confirmed are the members that were stored when the others were last read; nil before that.
	confirmed []string
	others    []Record
	// live are the members of that reading, for the next write; readAt is when it ended.
	live   []string
	readAt time.Duration
	// renewed is when the last renewal that succeeded was asked for. It means nothing without version.
	renewed time.Duration
	seen    map[string]sighting
}

// sighting is a version of another record, and when it was first seen.
type sighting struct {
	version string
	at      time.Duration
}

// NewMember returns a member without a record. most limits how many members own keys at once, the oldest; 0 means all.
func NewMember(id string, timing Timing, most int) *Member {
	return &Member{id: id, timing: timing, most: most, seen: map[string]sighting{}}
}

// Write is a write of the member's own record. Version is that of the record that it replaces; "" creates one.
type Write struct {
	Version string
	Members []string
}

// ID returns its name.
func (m *Member) ID() string { return m.id }

// Next returns the write that the member needs: a renewal, with the members that it read last. From now on it does not
// own keys that the new members give to others. Send it only when nothing acts on those; until then, send Renewal.
func (m *Member) Next() Write {
	m.intended = nil
	if m.version != "" && !slices.Equal(m.live, m.stored) {
		m.intended = m.live
	}
	return Write{m.version, m.live}
}

// Settled reports whether Next only renews.
func (m *Member) Settled() bool {
	return m.version != "" && slices.Equal(m.live, m.stored) && slices.Equal(m.confirmed, m.stored)
}

// Renewal returns the write that changes nothing but the time.
func (m *Member) Renewal() Write { return Write{m.version, m.stored} }

// Sent notes that a write is about to be sent. Until another is answered it may be stored at any time.
func (m *Member) Sent(w Write) {
	if m.version != "" && !slices.Equal(w.Members, m.stored) {
		m.unanswered = append(m.unanswered, w.Members)
	}
}

// Written notes that a write was stored, and asked for at a time. No earlier write can be stored any more: each names
// the version that it replaces.
func (m *Member) Written(w Write, version string, asked time.Duration) {
	m.version, m.renewed, m.stored, m.unanswered = version, asked, w.Members, nil
	if slices.Equal(m.intended, m.stored) {
		m.intended = nil
	}
}

// Removed notes that the member has no record any more. It owns nothing until it has written another, and read again.
func (m *Member) Removed() {
	m.version, m.stored, m.unanswered, m.intended, m.confirmed = "", nil, nil, nil, nil
}

// Read notes all records, of a reading that began after the last write was answered or given up. After a pause between
// readings the others count as just seen: what paused this member, such as the API server, may have paused them too.
func (m *Member) Read(records []Record, now time.Duration) {
	seen := make(map[string]sighting, len(records))
	m.others = nil
	own := false
	for _, r := range records {
		if r.ID == m.id {
			own = true
			m.found(r, now)
			continue
		}
		before, known := m.seen[r.ID]
		if known && before.version == r.Version && now-m.readAt <= m.timing.Lease/2 {
			seen[r.ID] = before
		} else {
			seen[r.ID] = sighting{r.Version, now}
		}
		if r.Everything && now-seen[r.ID].at >= m.timing.Lease {
			continue // its process has ended; nobody removes the Lease of that form
		}
		m.others = append(m.others, r)
	}
	m.seen, m.live, m.readAt = seen, oldest(records, m.most), now
	if !own {
		m.Removed()
		return
	}
	m.confirmed = m.stored
}

// found takes up the own record if it is not the one that is known. Only this member writes it.
func (m *Member) found(r Record, now time.Duration) {
	if r.Version == m.version {
		return
	}
	if m.version == "" {
		m.renewed = now - m.timing.Deadline
	}
	m.version, m.stored, m.unanswered = r.Version, r.Members, nil
}

// Expired returns the records that have not changed for so long that their members do not act any more.
func (m *Member) Expired(now time.Duration) []Record {
	var expired []Record
	for _, r := range m.others {
		if m.expired(&r, now) {
			expired = append(expired, r)
		}
	}
	return expired
}

func (m *Member) expired(r *Record, now time.Duration) bool {
	return !r.Everything && now-m.seen[r.ID].at >= m.timing.Lease
}

// Left returns for how long the member may act without another renewal.
func (m *Member) Left(now time.Duration) time.Duration {
	if m.version == "" {
		return 0
	}
	return max(0, m.timing.Deadline-(now-m.renewed))
}

// Owns reports whether a key is the member's, while Left is more than zero.
func (m *Member) Owns(key string) bool {
	if m.version == "" || Owner(m.confirmed, key) != m.id || Owner(m.stored, key) != m.id ||
		m.intended != nil && Owner(m.intended, key) != m.id {
		return false
	}
	for _, members := range m.unanswered {
		if Owner(members, key) != m.id {
			return false
		}
	}
	return !slices.ContainsFunc(m.others, func(r Record) bool { return r.Claims(key) })
}

// Wants reports whether the member's own record claims a key.
func (m *Member) Wants(key string) bool { return Owner(m.stored, key) == m.id }

// Claimed reports whether some member claims a key, by the last reading.
func (m *Member) Claimed(key string) bool {
	_, other := m.Holder(key)
	return other || Owner(m.confirmed, key) == m.id
}

// Served reports whether another member claims a key whose record has not expired. Only counts depend on it: a claim
// counts until its record is removed.
func (m *Member) Served(key string, now time.Duration) bool {
	return slices.ContainsFunc(m.others, func(r Record) bool { return r.Claims(key) && !m.expired(&r, now) })
}

// Led reports whether a leader of the form with one shard claims everything.
func (m *Member) Led() bool {
	return slices.ContainsFunc(m.others, func(r Record) bool { return r.Everything })
}

// Holder returns the record of the other member that claims a key; false if there is none.
func (m *Member) Holder(key string) (Record, bool) {
	i := slices.IndexFunc(m.others, func(r Record) bool { return r.Claims(key) })
	if i < 0 {
		return Record{}, false
	}
	return m.others[i], true
}

// Others returns the records of the other members, by the last reading. Callers must not change them.
func (m *Member) Others() []Record { return m.others }
