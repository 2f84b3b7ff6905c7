package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestHighPrioritiesNeedTheRightToPatch(t *testing.T) {
	w, _ := ownedFixture(t)
	for _, c := range []struct {
		who      string
		priority int
		refused  bool
	}{
		{"alice", 1000, false}, {"alice", -1000, false}, {"alice", 1001, true}, {"alice", -1001, true}, {"alice", 2147483647, true}, {"alice", -2147483648, true},
		{"root", 1001, false}, {"root", 2147483647, false},
	} {
		body := fmt.Sprintf(`{"priority": %d, "holdUntilDeleted": true, "bundles": [{"resources": {"CPU": 1}}]}`, c.priority)
		answer := w.by(c.who, http.MethodPut, llmPath+"/request_resources/of-"+c.who, body)
		refused := answer.Code == http.StatusForbidden && strings.Contains(answer.Body.String(), "you need the verb patch on rayclusters.ray.io")
		if refused != c.refused || !refused && answer.Code >= http.StatusMultipleChoices {
			t.Errorf("%s with priority %d: %d %s", c.who, c.priority, answer.Code, answer.Body)
		}
	}
}
