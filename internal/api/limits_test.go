package api

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
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

func TestLongHeadersAndAddressesAreProblems(t *testing.T) {
	w := newFixture(t)
	send := func(path string, header http.Header) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Host = "localhost"
		for name, values := range header {
			request.Header[name] = values
		}
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, request)
		return recorder
	}
	many := http.Header{}
	for i := range 2000 {
		many.Set("X-"+strconv.Itoa(i), "a")
	}
	for name, test := range map[string]struct {
		answer *httptest.ResponseRecorder
		status int
		slug   string
	}{
		"a long value":       {send("/healthz", http.Header{"X-Long": {strings.Repeat("a", maxHeader)}}), 431, "header-too-large"},
		"many headers":       {send("/healthz", many), 431, "header-too-large"},
		"a value repeated":   {send("/healthz", http.Header{"X-Long": strings.Split(strings.Repeat("a,", maxHeader/2), ",")}), 431, "header-too-large"},
		"a long path":        {send("/"+strings.Repeat("a", maxURI), nil), 414, "uri-too-long"},
		"a long query":       {send("/healthz?a="+strings.Repeat("a", maxURI), nil), 414, "uri-too-long"},
		"a path that is not": {send("/v1/namespaces/%ff%fe/rayclusters", nil), 400, "invalid-request"},
	} {
		if problem := readAnswer[apiv1.Problem](t, test.answer); test.answer.Code != test.status || problem.Type != problemBase+test.slug {
			t.Errorf("%s: %d %+v", name, test.answer.Code, problem)
		}
	}
	if got := send("/healthz", http.Header{"X-Long": {strings.Repeat("a", maxHeader/2)}}); got.Code != http.StatusOK {
		t.Errorf("a header within the limit: %d", got.Code)
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
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, request)
		if recorder.Code != want {
			t.Errorf("%q: %d, want %d", encoding, recorder.Code, want)
		}
	}
}
