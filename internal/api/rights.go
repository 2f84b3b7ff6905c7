package api

import (
	"errors"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
)

// authorize checks the right that an operation requires, on the object of the call. Handlers check operations per
// namespace.
func (g *guard) authorize(c *gin.Context, caller access.Caller, operation operation) error {
	if g.access == nil || operation.PerNamespace {
		return nil
	}
	right := operation.Right
	right.Namespace, right.Name = c.Param("namespace"), c.Param("name")
	return g.access.Authorize(c.Request.Context(), caller, right)
}

// Recheck authenticates and authorizes the caller of c again. Operations that run for long call it from time to time:
// the token may have been revoked since.
func (g *guard) Recheck(c *gin.Context) error {
	if g.access == nil {
		return nil
	}
	caller, err := g.access.Authenticate(c.Request)
	if err != nil {
		return err
	}
	return g.authorize(c, caller, g.Operation(c))
}

// May reports whether the caller of c has a right; a refusal is not an error.
func (g *guard) May(c *gin.Context, right access.Right) (bool, error) {
	if g.access == nil {
		return true, nil
	}
	err := g.access.Authorize(c.Request.Context(), callerOf(c), right)
	if errors.Is(err, access.ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}

// maxReviews is the number of rights that one call asks for at the same time.
const maxReviews = 16

// Visible returns for each of the namespaces whether the caller of c has the right of its operation there, and whether
// it has the right in every namespace, future ones included.
func (g *guard) Visible(c *gin.Context, namespaces []string) (everywhere bool, visible map[string]bool, err error) {
	visible = make(map[string]bool, len(namespaces))
	right := g.Operation(c).Right
	everywhere, err = g.May(c, right)
	if err != nil || everywhere {
		for _, namespace := range namespaces {
			visible[namespace] = err == nil
		}
		return everywhere, visible, err
	}
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	allowed, errs := make([]bool, len(namespaces)), make([]error, len(namespaces))
	var reviews sync.WaitGroup
	slots := make(chan struct{}, maxReviews)
	for i, namespace := range namespaces {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			right := right
			right.Namespace = namespace
			allowed[i], errs[i] = g.May(c, right)
		})
	}
	reviews.Wait()
	for i, namespace := range namespaces {
		visible[namespace] = allowed[i]
	}
	return false, visible, errors.Join(errs...)
}
