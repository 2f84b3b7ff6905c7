package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

func TestAWhatIfBodyHasLimits(t *testing.T) {
	w := plannedFixture(t)
	for field, entry := range map[string]string{
		"groups": `{"name": "gpu"}`, "pendingRequests": `{"resources": {"CPU": 1}, "count": 1}`, "requestResources": `{"resources": {"CPU": 1}, "count": 1}`,
		"pendingGangRequests": `{"strategy": "PACK", "bundles": [{"CPU": 1}]}`,
	} {
		answer := w.call(http.MethodPost, llmPath+"/plan", `{"`+field+`": [`+strings.Repeat(entry+",", 500)+entry+`]}`)
		var problem apiv1.Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil || answer.Code != http.StatusBadRequest {
			t.Fatalf("%s: %d %v", field, answer.Code, err)
		}
		if len(problem.Errors) != 1 || problem.Errors[0].Field != field || !strings.Contains(problem.Errors[0].Expected, "not 501") {
			t.Errorf("%s: %+v", field, problem.Errors)
		}
	}
}

func TestAWhatIfBundleHasALimitOfNames(t *testing.T) {
	w := plannedFixture(t)
	names := make([]string, snapshotfile.MostWhatIfNames+1)
	for i := range names {
		names[i] = fmt.Sprintf(`"r%d": 1`, i)
	}
	for n, want := range map[int]int{maxResources: http.StatusOK, maxResources + 1: http.StatusBadRequest} {
		body := `{"pendingGangRequests": [{"strategy": "PACK", "bundles": [{` + strings.Join(names[:n], ", ") + `}]}]}`
		answer := w.call(http.MethodPost, llmPath+"/plan", body)
		if answer.Code != want || want == http.StatusBadRequest && !strings.Contains(answer.Body.String(), "at most 100 names, not 101") {
			t.Errorf("%d names: %d, %.300s", n, answer.Code, answer.Body)
		}
	}
}
