package httpapi

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// maxPriority is the most that an owner may give a request of its own, and with a minus the least. Beyond it is room for who looks after the
// RayCluster: otherwise one owner could put itself before all others for good.
const maxPriority = 1000

// mayPrioritize refuses a priority beyond maxPriority, unless the caller may change the RayCluster itself.
func (s *server) mayPrioritize(c *gin.Context, key nodepool.ClusterKey, priority int32) error {
	if -maxPriority <= priority && priority <= maxPriority {
		return nil
	}
	may, err := s.may(c, access.Right{Verb: "patch", Group: "ray.io", Resource: "rayclusters", Namespace: key.Namespace, Name: key.Name})
	if err != nil || may {
		return err
	}
	return &problem{kind: forbidden, detail: fmt.Sprintf("priority %d: beyond %d and -%d it takes patch on %s", priority, maxPriority, maxPriority, rayClusters)}
}
