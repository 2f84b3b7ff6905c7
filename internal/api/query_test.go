package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestUnknownAndRepeatedParametersAreRefused(t *testing.T) {
	w := newFixture(t)
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
		var p apiv1.Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if answer.Code != http.StatusBadRequest || wants != "" && (len(p.Errors) != 1 || p.Errors[0].Field != wants) {
			t.Errorf("%q: %d, %+v", query, answer.Code, p)
		}
	}
	for _, path := range []string{"/v1/rayclusters?namespace=ml", llmPath + "?wait=1s", llmPath + "/request_resources?x"} {
		if answer := w.call(http.MethodGet, path, ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "no query parameter") {
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

func TestValuesOfParametersMustMatchTheContract(t *testing.T) {
	w := newFixture(t)
	long := strings.Repeat("ü", 254)
	for query, want := range map[string]apiv1.FieldError{
		"/v1/requests?owner=" + long:                        {Field: "owner", Value: shorten(long), Expected: "at most 253 characters"},
		"/v1/requests?owner=":                               {Field: "owner", Expected: "text that is not empty"},
		"/v1/requests?namespace=ML":                         {Field: "namespace", Value: "ML", Expected: "text that matches ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
		"/v1/requests?namespace=" + strings.Repeat("m", 64): {Field: "namespace", Value: shorten(strings.Repeat("m", 64)), Expected: "at most 63 characters"},
		"/v1/requests?state=Done":                           {Field: "state", Value: "Done", Expected: "one of Waiting, Satisfied, Capped, Impossible, Expired"},
		llmPath + "/request_resources/a?wait=1h":            {Field: "wait", Value: "1h", Expected: "text that matches ^[0-9]{1,2}s?$"},
		llmPath + "/explain?group=" + long:                  {Field: "group", Value: shorten(long), Expected: "at most 253 characters"},
	} {
		answer := w.call(http.MethodGet, query, "")
		var p apiv1.Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if answer.Code != http.StatusBadRequest || len(p.Errors) != 1 || p.Errors[0] != want {
			t.Errorf("%.80s: %d, %+v, want %+v", query, answer.Code, p.Errors, want)
		}
	}
	if answer := w.call(http.MethodGet, "/v1/requests?namespace=ml&state=Waiting&owner="+strings.Repeat("ü", 253), ""); answer.Code == http.StatusBadRequest {
		t.Errorf("values of the contract: %s", answer.Body)
	}
}
