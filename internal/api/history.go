package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// ListHistory serves GET …/rayclusters/{name}/history.
func (s *server) ListHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any {
		list := apiv1.HistoryList{Items: []apiv1.HistoryEntry{}}
		if s.History != nil {
			list.Items = append(list.Items, s.History.Entries(view.Key)...)
		}
		return list
	})
}

// GetHistory serves GET …/rayclusters/{name}/history/{id}.
func (s *server) GetHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.DecisionID) {
	s.writePast(c, namespace, name, id, func(snapshot, _ json.RawMessage) json.RawMessage { return snapshot })
}

// GetHistoryPlan serves GET …/rayclusters/{name}/history/{id}/plan.
func (s *server) GetHistoryPlan(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.DecisionID) {
	s.writePast(c, namespace, name, id, func(_, plan json.RawMessage) json.RawMessage { return plan })
}

// decisionPattern is the ID of a decision; api/openapi.yaml repeats it.
var decisionPattern = regexp.MustCompile(`^[0-9]{1,19}$`)

// writePast answers with one part of a past decision.
func (s *server) writePast(
	c *gin.Context, namespace, name, id string, part func(snapshot, plan json.RawMessage) json.RawMessage,
) {
	if !decisionPattern.MatchString(id) {
		field := apiv1.FieldError{Field: "id", Value: shorten(id), Expected: "the ID of a decision, a number"}
		s.answers.Fail(c, invalidFields([]apiv1.FieldError{field}))
		return
	}
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	known := false
	var snapshot, plan json.RawMessage
	if s.History != nil {
		snapshot, plan, known, err = s.History.Past(view.Key, id)
	}
	switch {
	case err != nil:
		s.answers.Fail(c, err)
	case !known:
		s.fail(
			c, kindUnknownDecision,
			fmt.Sprintf("the history of %s has no decision %s, or not any more", view.Key, id),
		)
	default:
		s.answers.JSON(c, http.StatusOK, part(snapshot, plan))
	}
}
