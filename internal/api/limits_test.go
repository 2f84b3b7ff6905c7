package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
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

func TestPendingAnswersAreLimitedPerCallerAndInTotal(t *testing.T) {
	a := newPending()
	var slower *access.ThrottledError
	var full *problem
	hold := func(caller string, size int) func() {
		t.Helper()
		release, err := a.hold(caller, size)
		if err != nil {
			t.Fatalf("%d bytes of %s: %v", size, caller, err)
		}
		return release
	}
	first := hold("alice", 10<<20)
	if _, err := a.hold("alice", 10<<20); !errors.As(err, &slower) || slower.After <= 0 {
		t.Errorf("20 MiB of one caller: %v", err)
	}
	hold("alice", smallAnswer)
	releases := []func(){first}
	for _, caller := range []string{"b", "c", "d", "e", "f"} {
		releases = append(releases, hold(caller, 10<<20))
	}
	if _, err := a.hold("g", 10<<20); !errors.As(err, &full) || full.Kind != kindUnavailable {
		t.Errorf("70 MiB of all callers: %v", err)
	}
	if used := (&answers{pending: a}).Used(); used != 60./64 {
		t.Errorf("%v of the bytes are in use, want 60 of 64 MiB", used)
	}
	for _, release := range releases {
		release()
	}
	hold("g", 2*maxOfAll)() // no other answer is pending
	if all, most := a.bytes.used(); all != 0 || most != 0 {
		t.Errorf("when all are read %d bytes are held", all)
	}
}

func TestEncodingReleasesItsSlot(t *testing.T) {
	a := newPending()
	for i, body := range []any{1, func() {}} {
		if _, err := a.encode(body); (err == nil) != (i == 0) || len(a.encoding) != 0 {
			t.Errorf("%T: %v, and %d are being encoded", body, err, len(a.encoding))
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

// slowReader is a caller that reads only when the test says so.
type slowReader struct {
	*httptest.ResponseRecorder
	begun, read chan struct{}
}

func (r slowReader) Write(text []byte) (int, error) {
	close(r.begun)
	<-r.read
	return r.ResponseRecorder.Write(text)
}

func TestALargeAnswerIsRefusedWhileItsCallerHasUnreadOnes(t *testing.T) {
	w := newFixture(t)
	view := busy()
	view.Err = strings.Repeat("x", 16<<20)
	w.fleet[llm] = view
	slow := slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	request := httptest.NewRequest(http.MethodGet, llmPath, nil)
	request.Host = "127.0.0.1:8090"
	done := make(chan struct{})
	go func() {
		w.handler.ServeHTTP(slow, request)
		close(done)
	}()
	<-slow.begun
	if got := w.call(http.MethodGet, llmPath, ""); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("while the first is not read: %d", got.Code)
	}
	if got := w.call(http.MethodGet, llmPath+"/request_resources", ""); got.Code != http.StatusOK {
		t.Errorf("a small answer: %d %s", got.Code, got.Body)
	}
	close(slow.read)
	<-done
	if got := w.call(http.MethodGet, llmPath, ""); got.Code != http.StatusOK || slow.Code != http.StatusOK {
		t.Errorf("when it is read: %d, and the first %d", got.Code, slow.Code)
	}
}
