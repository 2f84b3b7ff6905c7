package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestUnknownAndRepeatedParametersAreRefusedByName(t *testing.T) {
	w := newWorld(t)
	for query, wants := range map[string]string{
		"":                    "",
		"?gruop=a100":         "gruop",
		"?group=a100&x=1":     "x",
		"?group=a&group=b":    "group",
		"?group=a100;pod=b":   "",
		"?group=%zz":          "",
		"?group=a100&%0a=odd": "\n",
	} {
		answer := w.call(http.MethodGet, llmPath+"/explain"+query, "")
		var p Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if answer.Code != http.StatusBadRequest || wants != "" && (len(p.Errors) != 1 || p.Errors[0].Field != wants) {
			t.Errorf("%q: %d, %+v", query, answer.Code, p)
		}
	}
	for _, path := range []string{"/v1/rayclusters?namespace=ml", llmPath + "?wait=1s", llmPath + "/request_resources?x"} {
		if answer := w.call(http.MethodGet, path, ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "no parameter in the query") {
			t.Errorf("%s: %d, %s", path, answer.Code, answer.Body)
		}
	}
	if answer := w.call(http.MethodPost, llmPath+"/request_resources?dryRun=true", `{"num_cpus":1}`); answer.Code != http.StatusBadRequest || w.requests.sets != 0 {
		t.Errorf("a write: %d, written %d times", answer.Code, w.requests.sets)
	}
	if answer := w.call(http.MethodGet, llmPath+"/explain?group=a100", ""); answer.Code != http.StatusOK {
		t.Errorf("a parameter of the contract: %d, %s", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/healthz?from=balancer", ""); answer.Code != http.StatusOK {
		t.Errorf("a probe: %d", answer.Code)
	}
}
