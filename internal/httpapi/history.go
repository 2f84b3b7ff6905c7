package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// History remembers the last decisions about each RayCluster.
type History interface {
	// Entries are those about a cluster, newest first; nobody changes them.
	Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry
	// Past is what a decision was made from and what it came to, as JSON; false where it is not remembered.
	Past(key nodepool.ClusterKey, id string) (snapshot, plan json.RawMessage, known bool, err error)
}

// unknownDecision is the kind of problem of a decision that is not, or no longer, remembered.
var unknownDecision = kind{"unknown-decision", "Unknown decision", http.StatusNotFound}

// ListHistory serves GET …/rayclusters/{name}/history.
func (s *server) ListHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	answer := apiv1.HistoryList{Items: []apiv1.HistoryEntry{}}
	if s.History != nil {
		answer.Items = append(answer.Items, s.History.Entries(view.Key)...)
	}
	write(c, http.StatusOK, "application/json", answer)
}

// GetHistory serves GET …/rayclusters/{name}/history/{id}.
func (s *server) GetHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.DecisionID) {
	s.writePast(c, namespace, name, id, func(snapshot, _ json.RawMessage) json.RawMessage { return snapshot })
}

// GetHistoryPlan serves GET …/rayclusters/{name}/history/{id}/plan.
func (s *server) GetHistoryPlan(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.DecisionID) {
	s.writePast(c, namespace, name, id, func(_, plan json.RawMessage) json.RawMessage { return plan })
}

// decisionPattern is an id of the history; the contract repeats it.
var decisionPattern = regexp.MustCompile(`^[0-9]{1,19}$`)

func (s *server) writePast(c *gin.Context, namespace, name, id string, part func(snapshot, plan json.RawMessage) json.RawMessage) {
	if !decisionPattern.MatchString(id) {
		s.fail(c, invalid([]apiv1.FieldError{{Field: "id", Value: shorten(id), Expected: "the id of a decision, a number"}}))
		return
	}
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	known := false
	var snapshot, plan json.RawMessage
	if s.History != nil {
		snapshot, plan, known, err = s.History.Past(view.Key, id)
	}
	switch {
	case err != nil:
		s.fail(c, err)
	case !known:
		s.fail(c, &problem{kind: unknownDecision, detail: fmt.Sprintf("decision %s about %s is not remembered", id, view.Key)})
	default:
		write(c, http.StatusOK, "application/json", part(snapshot, plan))
	}
}
