package shards

import (
	"cmp"
	"slices"
)

// Record is what the Lease of a member says.
type Record struct {
	// ID names the member, for one run of its process.
	ID string
	// Version changes with each write.
	Version string
	// Since orders members by age: the second in which the API server created the Lease.
	Since int64
	// Address is where the other members reach its REST API; empty means nowhere.
	Address string
	// Members are those among which the member divides all keys, sorted. Empty means that it claims none.
	Members []string
	// Everything means that it claims all keys: the leader of the form with one shard.
	Everything bool
}

// Claims reports whether the member says that a key is its own.
func (r *Record) Claims(key string) bool {
	return r.Everything || slices.Contains(r.Members, r.ID) && Owner(r.Members, key) == r.ID
}

// oldest returns the IDs of the oldest n members, sorted; 0 means all.
func oldest(records []Record, n int) []string {
	records = slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return r.Everything })
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
	})
	if n > 0 && len(records) > n {
		records = records[:n]
	}
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	slices.Sort(ids)
	return ids
}
