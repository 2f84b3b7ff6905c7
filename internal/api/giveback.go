package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// GiveBacks agrees on what RayClusters give back. Its methods return giveback.ErrRefused, nodepool.ErrConflict,
// nodepool.ErrReadOnly and nodepool.ErrGone.
type GiveBacks interface {
	Begin(ctx context.Context, key nodepool.ClusterKey, ask giveback.Ask) (giveback.Reservation, error)
	End(ctx context.Context, key nodepool.ClusterKey) error
}

// GetGiveBack serves GET …/give_back.
func (s *server) GetGiveBack(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	switch {
	case err != nil:
		s.answers.Fail(c, err)
	case view.Kube.GiveBack == nil:
		s.fail(c, kindUnknownName, fmt.Sprintf("%s gives nothing back", view.Cluster))
	default:
		s.answers.JSON(c, http.StatusOK, giveback.StateOf(*view.Kube.GiveBack, view.givenBack))
	}
}

// GiveBack serves POST …/give_back.
func (s *server) GiveBack(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	if s.GiveBacks == nil {
		s.notServed(c)
		return
	}
	text, err := readJSON(c.Writer, c.Request)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	ask, fault := giveback.ReadAsk(text, s.Now())
	if fault != nil {
		s.answers.Fail(c, invalidField(fault.Path.String(), fault.Value, fault.Want))
		return
	}
	view, err := s.decided(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	reservation, err := s.GiveBacks.Begin(ctx, view.Cluster, ask)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.fail(c, kindUnavailable, fmt.Sprintf("no cycle of %s has answered; show what it gives back, and try again",
			view.Cluster))
	case err != nil:
		s.answers.Fail(c, fmt.Errorf("%s: %w", view.Cluster, err))
	default:
		state := view.givenBack
		if ask.DryRun {
			state = func(giveback.Worker) string { return "" }
		}
		s.answers.JSON(c, http.StatusOK, giveback.StateOf(reservation, state))
	}
}

// EndGiveBack serves DELETE …/give_back.
func (s *server) EndGiveBack(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	if s.GiveBacks == nil {
		s.notServed(c)
		return
	}
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	s.write(c, fmt.Sprintf("ending what %s gives back", key),
		func(ctx context.Context) error { return s.GiveBacks.End(ctx, key) })
}

// givenBack returns what a worker of the reservation does.
func (v View) givenBack(w giveback.Worker) string {
	for i := range v.Snapshot.Nodes {
		n := &v.Snapshot.Nodes[i]
		switch {
		case n.Pod != w.Pod:
		case (n.State == planner.Leaving || n.State == planner.Idle) && len(n.Activity) == 0:
			return giveback.Leaves
		default:
			return giveback.Works
		}
	}
	return giveback.Gone
}
