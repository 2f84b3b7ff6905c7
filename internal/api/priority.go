package api

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// maxPriority is the highest priority that owners may give their own requests; the lowest is its negative. Values
// beyond are for those who may patch the RayCluster: otherwise one owner could always come before all others.
const maxPriority = 1000

// checkPriority refuses a priority beyond maxPriority, unless the caller may patch the RayCluster.
func (s *server) checkPriority(c *gin.Context, key nodepool.ClusterKey, priority int32) error {
	if -maxPriority <= priority && priority <= maxPriority {
		return nil
	}
	if may, err := s.mayPatch(c, key); err != nil || may {
		return err
	}
	detail := fmt.Sprintf("priority %d: beyond %d and -%d you need the verb patch on %s",
		priority, maxPriority, maxPriority, rayClusters)
	return &problem{Kind: kindForbidden, Detail: detail}
}
