package pools

import (
	"time"
)

// ClaimCount counts NodeClaims whose nodes are on their way.
type ClaimCount struct {
	// Launched ones have a machine; Requested ones may still fail.
	Launched  int `json:"launched"`
	Requested int `json:"requested"`
}

// CountClaims adds to Karpenter's pools how many of their nodes are on their way at a moment; the zero
// moment, of claims read from files, leaves their age out of account. claims is nil where they were not read.
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
	switch claim.Progress(now) {
	case OnItsWay:
		c.Launched++
	case Requested:
		c.Requested++
	}
}
