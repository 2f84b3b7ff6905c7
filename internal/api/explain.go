package api

import (
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Explain serves GET …/rayclusters/{name}/explain.
func (s *server) Explain(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, params apiv1.ExplainParams) {
	question, err := questionOf(params)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	view, err := s.decided(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	leave, err := s.enterPlan(c.Request.Context())
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	defer leave()
	explanation, err := planner.Explain(view.Snapshot, view.Snapshot.Policy, question)
	var unknown *planner.UnknownError
	switch {
	case errors.As(err, &unknown):
		s.fail(c, kindUnknownName, unknown.Error())
		return
	case err != nil:
		s.answers.Fail(c, err)
		return
	}
	if why := view.Unscaled(); why != "" {
		detail := planner.Detail{
			About:  "RayCluster " + view.Cluster.String(),
			Reason: planner.Reason{Code: raydemand.CodeNotScaled, Message: why},
		}
		explanation = conditional(explanation)
		explanation.Details = slices.Insert(explanation.Details, 0, detail)
	}
	explanation.Details = slices.Concat(launchesThatWait(view.Plan, question.Group), explanation.Details)
	s.answers.JSON(c, http.StatusOK, explanation)
}

// launchesThatWait returns why launches of the plan wait, for one group or for all. The planner does not know it: the
// plan is the same when they no longer wait.
func launchesThatWait(plan planner.Plan, group string) (details []planner.Detail) {
	for _, g := range plan.Groups {
		if group != "" && g.Name != group {
			continue
		}
		for _, reason := range g.Reasons {
			if reason.Code == planner.CodeProvisioning {
				details = append(details, planner.Detail{About: "group " + g.Name, Reason: reason})
			}
		}
	}
	return details
}

// conditional returns an explanation as it reads for a RayCluster that Heliostat does not scale.
func conditional(e planner.Explanation) planner.Explanation {
	e.Reason = e.Reason.Conditional()
	e.Details = slices.Clone(e.Details)
	for i := range e.Details {
		e.Details[i].Reason = e.Details[i].Reason.Conditional()
	}
	return e
}

// questionOf reads the parameters, exactly one of which must be set.
func questionOf(p apiv1.ExplainParams) (planner.Question, error) {
	q := planner.Question{Group: p.Group, Pod: p.Pod, Gang: p.Gang, Request: p.Request}
	set := 0
	for _, value := range []string{p.Group, p.Pod, p.Gang, p.Bundle, p.Request} {
		if value != "" {
			set++
		}
	}
	if set != 1 {
		detail := "want exactly one of the parameters group, pod, gang, bundle and request"
		return q, &problem{Kind: kindInvalidRequest, Detail: detail}
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

// invalidInput returns the problem of an error of package snapshotfile.
func invalidInput(err error) error {
	input, is := errors.AsType[*snapshotfile.InputError](err)
	if !is {
		return err
	}
	fields := []apiv1.FieldError{{Field: input.Field, Value: input.Value, Expected: input.Want}}
	return &problem{Kind: kindInvalidRequest, Detail: input.Error(), Fields: fields}
}
