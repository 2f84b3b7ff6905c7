package api

import (
	"slices"

	"github.com/gin-gonic/gin"
)

// visible returns the items in namespaces in which the caller has the right of the call. It reuses items.
func visible[T any](s *server, c *gin.Context, items []T, namespaceOf func(T) string) ([]T, error) {
	namespaces := make([]string, len(items))
	for i := range items {
		namespaces[i] = namespaceOf(items[i])
	}
	_, seen, err := s.guard.Visible(c, namespaces)
	return slices.DeleteFunc(items, func(item T) bool { return !seen[namespaceOf(item)] }), err
}
