package api

import (
	"strings"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Division says how several replicas divide the RayClusters. Each knows the decisions about its own.
type Division interface {
	// Route returns the IP address and port of the replica that decides about a RayCluster: "" if its address is
	// unknown. mine: this replica does. known is false if none does now.
	Route(key nodepool.ClusterKey) (address string, mine, known bool)
	// Addresses returns those of all other replicas. complete is false while some RayCluster may be in none of the
	// replicas' answers.
	Addresses() (addresses []string, complete bool)
}

// divide answers a call through the owner of its RayCluster, or through all replicas if it is about all RayClusters.
// What every replica knows, such as requests and nodes, it answers itself.
func (r *relay) divide(c *gin.Context) {
	path := c.FullPath()
	switch name := c.Param("name"); {
	case !strings.HasPrefix(path, "/v1/"):
	case name != "":
		r.toOwner(c, nodepool.ClusterKey{Namespace: c.Param("namespace"), Name: name})
	case c.GetHeader(passedHeader) != "": // another replica gathers the answers
		if _, complete := r.Division.Addresses(); !complete {
			r.unavailable(c, movesNow)
		}
	case strings.HasSuffix(path, "/rayclusters"):
		r.gatherLists(c)
	case path == "/v1/costs":
		r.gatherCosts(c)
	}
}

const movesNow = "RayClusters move between shards now, so a list could lack some; try again"

// toOwner passes a call about one RayCluster on, unless this replica decides about it.
func (r *relay) toOwner(c *gin.Context, key nodepool.ClusterKey) {
	if _, mine, _ := r.Division.Route(key); mine {
		return
	}
	where := func() (address string, known bool) {
		address, _, known = r.Division.Route(key)
		return address, known
	}
	r.passTo(c, where, "no shard decides about this RayCluster now; one takes over within seconds")
}

// others returns the addresses of all other shards, for a call about all RayClusters. It answers the call itself if
// they cannot all be asked now.
func (r *relay) others(c *gin.Context) (addresses []string, ok bool) {
	addresses, complete := r.Division.Addresses()
	if !complete {
		r.unavailable(c, movesNow)
		return nil, false
	}
	for _, address := range addresses {
		if err := r.mayPass(c, address); err != nil {
			r.answers.Fail(c, err)
			return nil, false
		}
	}
	return addresses, true
}
