package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func selector(t *testing.T, key, expression string) []raydemand.Selector {
	t.Helper()
	s, err := raydemand.ParseSelector(map[string]string{key: expression})
	must(t, err)
	return []raydemand.Selector{s}
}

// Semantics of ray.autoscaler.sdk.request_resources: num_cpus counts bundles {CPU 1}, equal pairs of bundle and
// selector are counted, a call replaces the former one, an empty one clears it.
func TestRequestsHaveTheSemanticsOfTheSDK(t *testing.T) {
	cpu := func(n int64) raydemand.Request {
		return raydemand.Request{Bundle: raydemand.Bundle{"CPU": raydemand.One}, Count: n}
	}
	gpu := func(amount raydemand.Amount, n int64, s []raydemand.Selector) raydemand.Request {
		return raydemand.Request{Bundle: raydemand.Bundle{"GPU": amount}, Count: n, Selectors: s}
	}
	zone := selector(t, "zone", "us-1")
	tests := map[string]struct {
		body string
		want []raydemand.Request
	}{
		"num_cpus counts bundles of one CPU":     {`{"num_cpus":4}`, []raydemand.Request{cpu(4)}},
		"a whole number may be written as 4.0":   {`{"num_cpus":4.0}`, []raydemand.Request{cpu(4)}},
		"num_cpus and equal bundles add up":      {`{"bundles":[{"CPU":1},{"GPU":1}],"num_cpus":2}`, []raydemand.Request{cpu(3), gpu(raydemand.One, 1, nil)}},
		"equal bundles are counted":              {`{"bundles":[{"GPU":1},{"GPU":0.5},{"GPU":1.0}]}`, []raydemand.Request{gpu(raydemand.One, 2, nil), gpu(raydemand.One/2, 1, nil)}},
		"equal pairs are counted, others not":    {`{"bundles":[{"GPU":1},{"GPU":1},{"GPU":1}],"bundle_label_selectors":[{"zone":"us-1"},{},{"zone":"in(us-1)"}]}`, []raydemand.Request{gpu(raydemand.One, 2, zone), gpu(raydemand.One, 1, nil)}},
		"a bare array is bundles":                {`[{"GPU":1}]`, []raydemand.Request{gpu(raydemand.One, 1, nil)}},
		"null is the same as leaving out":        {`{"num_cpus":null,"bundles":null,"bundle_label_selectors":null}`, []raydemand.Request{}},
		"zero is the same as leaving out":        {`{"bundles":[{"GPU":1,"CPU":0}]}`, []raydemand.Request{gpu(raydemand.One, 1, nil)}},
		"a bundle for nothing asks for nothing":  {`{"bundles":[{},{"GPU":0},{"GPU":1}]}`, []raydemand.Request{gpu(raydemand.One, 1, nil)}},
		"an empty list clears":                   {`{"bundles":[]}`, []raydemand.Request{}},
		"a bare empty list clears":               {`[]`, []raydemand.Request{}},
		"an empty object clears":                 {`{}`, []raydemand.Request{}},
		"no body clears":                         {``, []raydemand.Request{}},
		"amounts are exact in steps of 1/10000":  {`[{"GPU":0.1},{"GPU":0.10004}]`, []raydemand.Request{gpu(1000, 2, nil)}},
		"an empty list of selectors is for none": {`{"num_cpus":1,"bundles":[{"GPU":1}],"bundle_label_selectors":[]}`, []raydemand.Request{cpu(1), gpu(raydemand.One, 1, nil)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.requests.kept[llm] = []raydemand.Request{gpu(raydemand.Whole(9), 9, nil)}
			answer := w.call(http.MethodPost, llmPath+"/request_resources", test.body)
			if answer.Code != http.StatusOK {
				t.Fatalf("status %d: %s", answer.Code, answer.Body)
			}
			loadSpec(t).mustMatch("Requested", answer.Body.Bytes())
			if diff := cmp.Diff(test.want, readAnswer[apiv1.Requested](t, answer).Requested); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, w.requests.kept[llm]); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSinceIsTheStartOfTheRequest(t *testing.T) {
	w := newFixture(t)
	path := llmPath + "/request_resources"
	post := func(at time.Time, body string) *time.Time {
		w.now = at
		return readAnswer[apiv1.Requested](t, w.call(http.MethodPost, path, body)).Since
	}
	if got := readAnswer[apiv1.Requested](t, w.call(http.MethodGet, path, "")).Since; got != nil {
		t.Errorf("nothing requested, since %v", got)
	}
	if got := post(noon, `{"num_cpus":4}`); got == nil || !got.Equal(noon) {
		t.Errorf("new request since %v", got)
	}
	if got := post(noon.Add(time.Hour), `{"bundles":[{"CPU":1},{"CPU":1}],"num_cpus":2}`); got == nil || !got.Equal(noon) {
		t.Errorf("equal request since %v, want the first time", got)
	}
	if got := readAnswer[apiv1.Requested](t, w.call(http.MethodGet, path, "")).Since; got == nil || !got.Equal(noon) {
		t.Errorf("read since %v", got)
	}
	if got := post(noon.Add(2*time.Hour), `{"num_cpus":5}`); got == nil || !got.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("other request since %v", got)
	}
	if w.requests.sets != 3 {
		t.Errorf("%d writes, want 3: an equal request is written too, for what was read may be old", w.requests.sets)
	}
	if got := w.call(http.MethodDelete, path, ""); got.Code != http.StatusNoContent || got.Body.Len() != 0 {
		t.Errorf("DELETE: %d %q", got.Code, got.Body)
	}
	if got := readAnswer[apiv1.Requested](t, w.call(http.MethodGet, path, "")); len(got.Requested) != 0 || got.Since != nil {
		t.Errorf("cleared: %+v", got)
	}
}

func TestSinceIsNullForARequestOfUnknownAge(t *testing.T) {
	w := newFixture(t)
	w.requests.kept[llm] = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 4}}
	answer := w.call(http.MethodPost, llmPath+"/request_resources", `{"num_cpus":4}`)
	if got := readAnswer[apiv1.Requested](t, answer).Since; got != nil {
		t.Errorf("since %v, want null: its start is unknown", got)
	}
}

func TestErrorsOfTheStoreHaveTheirStatus(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		slug   string
	}{
		{nodepool.ErrGone, 404, "unknown-cluster"},
		{nodepool.ErrConflict, 409, "conflict"},
		{nodepool.ErrReadOnly, 409, "read-only"},
		{nodepool.ErrTooLarge, 413, "too-large"},
		{fmt.Errorf("%w: rayclusters are forbidden", nodepool.ErrDenied), 503, "unavailable"},
		{nodepool.ErrNotLeading, 503, "unavailable"},
		{nodepool.ErrWebhook, 503, "unavailable"},
		{nodepool.ErrUnserved, 503, "unavailable"},
		{ErrUnavailable, 503, "unavailable"},
		{context.DeadlineExceeded, 504, "timeout"},
		{errors.New("secret of the house"), 500, "internal"},
	} {
		w := newFixture(t)
		w.requests.NextErr = fmt.Errorf("patching: %w", test.err)
		answer := w.call(http.MethodPost, llmPath+"/request_resources", `{}`)
		problem := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != test.status || problem.Type != problemBase+test.slug {
			t.Errorf("%v: %d %+v, want %d %s", test.err, answer.Code, problem, test.status, test.slug)
		}
		if test.status == 500 && problem.Detail != "see the log of the server" {
			t.Errorf("the detail of an internal error is %q", problem.Detail)
		}
		if (test.status == 503) != (answer.Header().Get("Retry-After") != "") {
			t.Errorf("%v: Retry-After %q", test.err, answer.Header().Get("Retry-After"))
		}
	}
}
