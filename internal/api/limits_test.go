package api

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

func TestTheRateLimitIsPerCaller(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Access, c.RequestsPerSecond = &fakeAccess{}, 10 })
	for i := range 10 * 2 {
		if got := w.as("alice", http.MethodGet, llmPath); got.Code != http.StatusOK {
			t.Fatalf("call %d: %d", i, got.Code)
		}
	}
	got := w.as("alice", http.MethodGet, llmPath)
	if problem := readAnswer[apiv1.Problem](t, got); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" || problem.Type != problemBase+"throttled" {
		t.Errorf("one call too many: %d, Retry-After %q, %+v", got.Code, got.Header().Get("Retry-After"), problem)
	}
	loadSpec(t).mustMatch("Problem", got.Body.Bytes())
	if got := w.as("bob", http.MethodGet, llmPath); got.Code != http.StatusOK {
		t.Errorf("another caller: %d", got.Code)
	}
	if got := w.as("alice", http.MethodGet, "/healthz"); got.Code != http.StatusOK {
		t.Errorf("what is open to everybody: %d", got.Code)
	}
	w.now = w.now.Add(time.Second)
	if got := w.as("alice", http.MethodGet, llmPath); got.Code != http.StatusOK {
		t.Errorf("a second later: %d", got.Code)
	}
	unlimited := newFixture(t)
	for range 10_000 {
		if got := unlimited.call(http.MethodGet, "/v1/namespaces/none/rayclusters", ""); got.Code != http.StatusOK {
			t.Fatalf("without a limit: %d", got.Code)
		}
	}
}

func TestRefusedCallsDoNotCountAsConcurrent(t *testing.T) {
	w := newFixture(t, func(c *Config) {
		c.Access = &fakeAccess{allowed: func(access.Caller, access.Right) bool { return false }}
	})
	for i := range 2 * maxCalls {
		if got := w.as("alice", http.MethodGet, llmPath); got.Code != http.StatusForbidden {
			t.Fatalf("call %d: %d", i, got.Code)
		}
	}
}

func TestCompressedBodiesAreRefused(t *testing.T) {
	for encoding, want := range map[string]int{"gzip": 415, "br": 415, "identity": 200, "": 200} {
		w := newFixture(t)
		request := httptest.NewRequest(http.MethodPost, llmPath+"/request_resources", strings.NewReader(`{"num_cpus":1}`))
		request.Host = "localhost"
		request.Header.Set("Content-Type", "application/json")
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		recorder := w.send(request)
		if recorder.Code != want {
			t.Errorf("%q: %d, want %d", encoding, recorder.Code, want)
		}
	}
}

func TestAWhatIfBodyHasLimits(t *testing.T) {
	w := plannedFixture(t)
	for field, entry := range map[string]string{
		"groups": `{"name": "gpu"}`, "pendingRequests": `{"resources": {"CPU": 1}, "count": 1}`, "requestResources": `{"resources": {"CPU": 1}, "count": 1}`,
		"pendingGangRequests": `{"strategy": "PACK", "bundles": [{"CPU": 1}]}`,
	} {
		answer := w.call(http.MethodPost, llmPath+"/plan", `{"`+field+`": [`+strings.Repeat(entry+",", 500)+entry+`]}`)
		problem := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Field != field || !strings.Contains(problem.Errors[0].Expected, "not 501") {
			t.Errorf("%s: %d %+v", field, answer.Code, problem.Errors)
		}
	}
}

func TestTheGangsOfAWhatIfHaveALimitOfBundles(t *testing.T) {
	w := plannedFixture(t)
	for n, want := range map[int]int{snapshotfile.MostWhatIfBundles / 2: http.StatusOK, snapshotfile.MostWhatIfBundles/2 + 1: http.StatusBadRequest} {
		gang := `{"strategy": "PACK", "bundles": [` + strings.Repeat(`{"CPU": 1},`, n-1) + `{"CPU": 1}]}`
		answer := w.call(http.MethodPost, llmPath+"/plan", `{"pendingGangRequests": [`+gang+`,`+gang+`]}`)
		if answer.Code != want || want == http.StatusBadRequest && !strings.Contains(answer.Body.String(), "pendingGangRequests[1].bundles") {
			t.Errorf("twice %d bundles: %d, %.300s", n, answer.Code, answer.Body)
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

func TestANameOfAWhatIfGroupHasALimit(t *testing.T) {
	w := plannedFixture(t)
	for n, want := range map[int]int{snapshotfile.MostWhatIfName: http.StatusOK, snapshotfile.MostWhatIfName + 1: http.StatusBadRequest} {
		body := `{"groups": [{"name": "` + strings.Repeat("x", n) + `", "resources": {"CPU": 1}, "maxReplicas": 1}]}`
		answer := w.call(http.MethodPost, llmPath+"/plan", body)
		if answer.Code != want || want == http.StatusBadRequest && !strings.Contains(answer.Body.String(), "at most 253 characters") {
			t.Errorf("%d characters: %d, %.300s", n, answer.Code, answer.Body)
		}
	}
}

func TestAnAnswerWithoutAnEncodingIsAnInternalError(t *testing.T) {
	var log bytes.Buffer
	w := newFixture(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	view := busy()
	view.At = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	w.fleet[llm] = view
	got := w.call(http.MethodGet, llmPath, "")
	if problem := readAnswer[apiv1.Problem](t, got); got.Code != http.StatusInternalServerError || problem.Type != problemBase+"internal" {
		t.Errorf("answer %d %s", got.Code, got.Body)
	}
	if !strings.Contains(log.String(), "year outside of range") {
		t.Errorf("the log says %q", log.String())
	}
}
