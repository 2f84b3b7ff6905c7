package api

import (
	"strings"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
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
	case path == "/v1/events":
		r.gatherStreams(c)
	case strings.HasSuffix(path, "/rayclusters"):
		r.gatherLists(c)
	case path == "/v1/costs":
		r.gatherCosts(c)
	}
}

const movesNow = "RayClusters move between shards now, so a list could lack some; try again"

// toOwner passes a call about one RayCluster on, unless this replica decides about it.
func (r *relay) toOwner(c *gin.Context, key nodepool.ClusterKey) {
	address, mine, known := r.Division.Route(key)
	if mine {
		return
	}
	if !known {
		r.unavailable(c, "no shard decides about this RayCluster now; one takes over within seconds")
		return
	}
	if err := r.mayPass(c, address); err != nil {
		r.answers.Fail(c, err)
		return
	}
	r.pass(c, address, func() bool {
		now, _, known := r.Division.Route(key)
		return known && now == address
	})
}

// mayPass returns why a call cannot be passed on to another shard, or nil.
func (r *relay) mayPass(c *gin.Context, address string) error {
	withoutToken := c.GetHeader("Authorization") == "" && c.GetHeader(access.ForwardedHeader) == ""
	switch {
	case c.GetHeader(passedHeader) != "":
		return &problem{
			Kind: kindUnavailable,
			Detail: "another shard passed this call on, but this shard does not " +
				"decide about the RayCluster; try again",
		}
	case address == "":
		return &problem{
			Kind: kindUnavailable,
			Detail: "another shard decides, but its Lease has no address to pass " +
				"calls on to",
		}
	case r.Access != nil && withoutToken:
		// The caller authenticated by TLS, to this replica alone. A header that names the caller would have to be
		// trusted.
		c.Header("Connection", "close")
		return &problem{
			Kind: kindNotLeader,
			Detail: "another shard decides, and a client certificate cannot be " +
				"passed on to it; call with a token",
		}
	}
	return nil
}

func (r *relay) unavailable(c *gin.Context, why string) {
	r.answers.Fail(c, &problem{Kind: kindUnavailable, Detail: why})
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
