package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/body"
)

func TestTheKeysOfASliceCountAsResourcesOfABundle(t *testing.T) {
	names := func(n int) string {
		var members strings.Builder
		for i := range n {
			fmt.Fprintf(&members, `"r%d":0,`, i)
		}
		return members.String()
	}
	for n, want := range map[int]int{body.MaxResources - 2: http.StatusOK, body.MaxResources - 1: http.StatusBadRequest, body.MaxResources: http.StatusBadRequest} {
		body := `[{` + names(n) + `"slice":0,"resources":0}]`
		if got := newFixture(t).call(http.MethodPost, llmPath+"/request_resources", body); got.Code != want {
			t.Errorf("%d resources besides slice and resources: %d, want %d", n, got.Code, want)
		}
	}
}
