package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestTheKeysOfASliceCountAsResourcesOfABundle(t *testing.T) {
	names := func(n int) string {
		var members strings.Builder
		for i := range n {
			fmt.Fprintf(&members, `"r%d":0,`, i)
		}
		return members.String()
	}
	for n, want := range map[int]int{maxResources - 2: http.StatusOK, maxResources - 1: http.StatusBadRequest, maxResources: http.StatusBadRequest} {
		body := `[{` + names(n) + `"slice":0,"resources":0}]`
		if got := newFixture(t).call(http.MethodPost, llmPath+"/request_resources", body); got.Code != want {
			t.Errorf("%d resources besides slice and resources: %d, want %d", n, got.Code, want)
		}
	}
}
