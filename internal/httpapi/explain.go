package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unknownName is the kind of problem of a thing that a RayCluster, which is there, has not.
var unknownName = kind{"unknown-name", "Unknown name", http.StatusNotFound}

// Explain serves GET …/rayclusters/{name}/explain.
func (s *server) Explain(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, params apiv1.ExplainParams) {
	question, err := questionOf(params)
	if err != nil {
		s.fail(c, err)
		return
	}
	view, err := s.decided(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	type answer struct {
		explanation planner.Explanation
		err         error
	}
	got, err := inTime(c.Request.Context(), s.plans, callerOf(c).Name, func(stop <-chan struct{}) (answer, bool) {
		explanation, err := planner.Explain(stop, view.Snapshot, view.Snapshot.Policy, question)
		return answer{explanation, err}, !errors.Is(err, planner.ErrBrokenOff)
	})
	if err == nil {
		err = unanswered(got.err)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	explanation := got.explanation
	if why := view.unscaled(); why != "" {
		explanation.Details = slices.Insert(explanation.Details, 0, planner.Detail{
			About: "RayCluster " + view.Key.String(), Reason: planner.Reason{Code: raydemand.CodeNotScaled, Message: why},
		})
	}
	write(c, http.StatusOK, "application/json", explanation)
}

// unscaled says why what the plan launches and stops does not come about; empty where it does.
func (v *View) unscaled() string {
	switch {
	case v.Frozen:
		return "this is what would be: it is frozen, and nothing is written"
	case v.Mode == nodepool.Shadow || v.Mode == nodepool.Off:
		return "this is what would be: " + v.ModeReason
	case v.Unwritten != "":
		return "the last plan could not be written, and is tried again: " + v.Unwritten
	}
	return ""
}

// unanswered makes a problem of what planner.Explain refuses.
func unanswered(err error) error {
	var unknown *planner.UnknownError
	if errors.As(err, &unknown) {
		return &problem{kind: unknownName, detail: unknown.Error()}
	}
	return err
}

// questionOf reads the parameters, of which there is exactly one.
func questionOf(p apiv1.ExplainParams) (planner.Question, error) {
	q := planner.Question{Group: p.Group, Pod: p.Pod, Gang: p.Gang, Request: p.Request}
	asked := 0
	for _, given := range []string{p.Group, p.Pod, p.Gang, p.Bundle, p.Request} {
		if given != "" {
			asked++
		}
	}
	if asked != 1 {
		return q, &problem{kind: invalidRequest, detail: "want exactly one of the parameters group, pod, gang, bundle and request"}
	}
	if p.Bundle != "" {
		demand, err := snapshotfile.ReadRequest(p.Bundle, "bundle")
		if err != nil {
			return q, invalidInput(err)
		}
		q.Demand = &demand
	}
	return q, nil
}

// invalidInput makes a problem of what the planner's readers refuse.
func invalidInput(err error) error {
	var input *snapshotfile.InputError
	if !errors.As(err, &input) {
		return err
	}
	return &problem{kind: invalidRequest, detail: input.Error(), errors: []apiv1.FieldError{{Field: input.Field, Value: input.Value, Expected: input.Want}}}
}
