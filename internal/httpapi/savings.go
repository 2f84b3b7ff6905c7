package httpapi

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// ListSavings serves GET /v1/savings.
func (s *server) ListSavings(c *gin.Context, params apiv1.ListSavingsParams) {
	if err := s.incomplete(); err != nil {
		s.answers.Fail(c, err)
		return
	}
	back, err := sinceOf(params.Since, "7d")
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	now := s.now()
	items := []apiv1.SavingItem{}
	if s.Savings != nil {
		items = append(items, s.Savings.Savings(now.Add(-back))...)
	}
	items = slices.DeleteFunc(items, func(i apiv1.SavingItem) bool { return !matches(params.Namespace, i.Namespace) })
	items, err = visible(s, c, items, func(i apiv1.SavingItem) string { return i.Namespace })
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, apiv1.Savings{
		Since: now.Add(-back).UTC(), Until: now.UTC(), Currency: s.Currency, Items: items,
	})
}
