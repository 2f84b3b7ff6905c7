package landing

import (
	"time"
)

// ClaimCount counts NodeClaims whose nodes are on their way.
type ClaimCount struct {
	// Launched claims have a machine; Requested ones may still fail.
	Launched  int `json:"launched"`
	Requested int `json:"requested"`
}

// CountClaims sets on Karpenter's pools how many of their nodes are on their way at a moment. At the zero moment, for
// claims read from files, the age of claims is ignored. claims is nil if they were not read.
func CountClaims(pools []Pool, claims []NodeClaim, now time.Time) {
	if claims == nil {
		return
	}
	for i := range pools {
		if pool := &pools[i]; pool.Provider == FromKarpenter {
			pool.NodeClaims = &ClaimCount{}
			for k := range claims {
				if claims[k].Pool == pool.Name {
					pool.NodeClaims.count(&claims[k], now)
				}
			}
		}
	}
}

func (c *ClaimCount) count(claim *NodeClaim, now time.Time) {
	switch progress := claim.progress(now); {
	case progress.hasMachine():
		c.Launched++
	case progress == Requested:
		c.Requested++
	}
}
