package shards

import "hash/fnv"

// Owner returns the member that owns a key, by rendezvous hashing: each member has a score for the key, and the highest
// wins. So a member that joins takes keys to itself only, and those of a member that leaves are spread over the others.
// It is "" without members. All versions of Heliostat must compute the same scores.
func Owner(members []string, key string) string {
	owner, best := "", uint64(0)
	for _, member := range members {
		s := score(member, key)
		if owner == "" || s > best || s == best && member < owner {
			owner, best = member, s
		}
	}
	return owner
}

// score hashes with FNV-1a, and mixes the bits with the finalizer of SplitMix64: without it the last bytes of a key
// hardly reach the high bits, which decide.
func score(member, key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(member)) // a hash returns no error
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
