package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

// GetCapacityPolicy serves GET …/capacity_policy.
func (s *server) GetCapacityPolicy(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, exists := s.Fleet.View(nodepool.ClusterKey{Namespace: namespace, Name: name})
	if !exists {
		s.answers.Fail(c, fmt.Errorf("reading the capacity policy of %s/%s: %w", namespace, name, nodepool.ErrGone))
		return
	}
	s.answers.JSON(c, http.StatusOK, view.CapacityPolicy())
}

// SetCapacityPolicy serves PUT …/capacity_policy.
func (s *server) SetCapacityPolicy(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	if s.Policies == nil {
		s.notServed(c)
		return
	}
	text, err := readJSON(c.Writer, c.Request)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	policy, fault := policytext.Read(text)
	if fault != nil {
		s.answers.Fail(c, invalidFields([]apiv1.FieldError{
			{Field: fault.Path.String(), Value: fault.Value, Expected: fault.Want},
		}))
		return
	}
	view, _ := s.Fleet.View(key)
	state := view.CapacityPolicy()
	state.Source, state.Policy, state.Fault = "annotation "+capacity.Annotation, policy, ""
	s.set(c, state, func(ctx context.Context) error {
		if err := s.Policies.SetCapacityPolicy(ctx, key, &policy); err != nil {
			return fmt.Errorf("setting the capacity policy of %s: %w", key, err)
		}
		return nil
	})
}

// ClearCapacityPolicy serves DELETE …/capacity_policy.
func (s *server) ClearCapacityPolicy(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	if s.Policies == nil {
		s.notServed(c)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	if err := s.Policies.SetCapacityPolicy(ctx, key, nil); err != nil {
		s.answers.Fail(c, fmt.Errorf("removing the capacity policy of %s: %w", key, err))
		return
	}
	c.Status(http.StatusNoContent)
}

// ResumeCluster serves PUT …/resume.
func (s *server) ResumeCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	if s.Policies == nil {
		s.notServed(c)
		return
	}
	s.set(c, apiv1.Suspension{}, func(ctx context.Context) error {
		if err := s.Policies.Resume(ctx, key); err != nil {
			return fmt.Errorf("resuming %s: %w", key, err)
		}
		return nil
	})
}
