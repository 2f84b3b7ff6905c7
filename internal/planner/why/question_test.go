package why

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
)

func TestAnAnswerOfManyDetailsIsCutAndSaysSo(t *testing.T) {
	e := cutToMost(model.Explanation{Details: make([]model.Detail, mostDetails+5)})
	if len(e.Details) != mostDetails || !strings.Contains(e.Message, "first 1000 of 1005") {
		t.Errorf("%d details: %s", len(e.Details), e.Message)
	}
}
