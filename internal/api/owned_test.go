package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeOwned stores requests of one cluster; each write gets a new version.
type fakeOwned struct {
	kept    map[string]nodepool.OwnedRequest
	version int
}

func newFakeOwned() *fakeOwned {
	return &fakeOwned{kept: map[string]nodepool.OwnedRequest{}}
}

func (f *fakeOwned) All(string) ([]nodepool.OwnedRequest, error) { return f.List(llm) }

func (f *fakeOwned) List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) {
	var all []nodepool.OwnedRequest
	for _, r := range f.kept {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b nodepool.OwnedRequest) int { return strings.Compare(a.ID, b.ID) })
	return all, f.known(key)
}

func (f *fakeOwned) known(key nodepool.ClusterKey) error {
	if key != llm {
		return nodepool.ErrGone
	}
	return nil
}

func (f *fakeOwned) Get(key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	r, there := f.kept[id]
	if !there || key != llm {
		return r, fmt.Errorf("%w: %s for %s", nodepool.ErrNoRequest, id, key)
	}
	return r, nil
}

func (f *fakeOwned) keep(r nodepool.OwnedRequest) nodepool.OwnedRequest {
	f.version++
	r.ResourceVersion = strconv.Itoa(f.version)
	if r.UID = f.kept[r.ID].UID; r.UID == "" {
		r.UID = "uid-" + r.ResourceVersion
	}
	f.kept[r.ID] = r
	return r
}

func (f *fakeOwned) Put(_ context.Context, wanted nodepool.OwnedRequest, may func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	known, there := f.kept[wanted.ID]
	of := &known
	if !there {
		of = nil
	} else {
		wanted.Owner = known.Owner
	}
	if err := may(of); err != nil {
		return known, false, err
	}
	return f.keep(wanted), !there, f.known(wanted.Cluster)
}

func (f *fakeOwned) Delete(_ context.Context, key nodepool.ClusterKey, id string, may func(*nodepool.OwnedRequest) error) error {
	known, err := f.Get(key, id)
	if err == nil {
		err = may(&known)
	}
	if err == nil {
		delete(f.kept, id)
	}
	return err
}

// ownedFixture is a server with a store of owned requests. alice and bob may request; root may also patch.
func ownedFixture(t *testing.T) (*fixture, *fakeOwned) {
	owned := newFakeOwned()
	w := newFixture(t, func(c *Config) {
		c.Owned = owned
		c.Access = &fakeAccess{allowed: func(caller access.Caller, right access.Right) bool {
			return right.Verb != "patch" || caller.Name == "root"
		}}
	})
	return w, owned
}

const oneGPU = `{"leaseSeconds": 60, "bundles": [{"resources": {"GPU": 1}, "count": 2}]}`

// by makes a call as a caller; headers are pairs.
func (w *fixture) by(caller, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+caller)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return w.send(request)
}

func TestTheLifeOfARequest(t *testing.T) {
	w, _ := ownedFixture(t)
	s := loadSpec(t)
	const path = llmPath + "/request_resources/train"
	for i, step := range []struct {
		caller, method, path, body string
		headers                    []string
		status                     int
		schema, says               string
	}{
		{"alice", "GET", path, "", nil, 404, "Problem", "unknown-request"},
		{"alice", "PUT", path, oneGPU, nil, 201, "OwnedRequest", `"owner":"alice"`},
		{"alice", "PUT", path, oneGPU, nil, 200, "OwnedRequest", `"expiresAt":"2026-03-01T12:01:00Z"`},
		{"bob", "PUT", path, oneGPU, nil, 403, "Problem", `request train belongs to \"alice\"`},
		{"bob", "DELETE", path, "", nil, 403, "Problem", "forbidden"},
		{"root", "PUT", path, oneGPU, nil, 200, "OwnedRequest", `"owner":"alice"`},
		{"bob", "GET", path, "", nil, 200, "OwnedRequest", `"code":"not_looked_at"`},
		{"bob", "GET", llmPath + "/requests", "", nil, 200, "RequestList", `"id":"train"`},
		{"alice", "DELETE", path, "", nil, 204, "", ""},
		{"alice", "DELETE", path, "", nil, 404, "Problem", "unknown-request"},
		{"alice", "PUT", llmPath + "/request_resources/Bad_ID", oneGPU, nil, 400, "Problem", "a DNS name of at most 63 characters"},
		{"alice", "PUT", path, oneGPU, []string{"Content-Type", "text/plain"}, 415, "Problem", "media-type"},
		{"alice", "PUT", path, oneGPU, []string{"If-None-Match", "*"}, 400, "Problem", `header If-None-Match is \"*\"`},
		{"alice", "DELETE", path, "", []string{"If-Match", "a"}, 400, "Problem", `header If-Match is \"a\"`},
	} {
		answer := w.by(step.caller, step.method, step.path, step.body, step.headers...)
		text := answer.Body.String()
		if answer.Code != step.status || !strings.Contains(text, step.says) {
			t.Errorf("%d: %s %s by %s: %d %s, want %d and %q", i, step.method, step.path, step.caller, answer.Code, text, step.status, step.says)
		}
		if step.schema != "" {
			s.mustMatch(step.schema, answer.Body.Bytes())
		}
	}
}

func TestThePlainRequestSaysWhyItsClusterIsNotScaled(t *testing.T) {
	w, ctx := newFixture(t), context.Background()
	caller := dial(t, w.handler)
	asked := apiv1.RequestResources{NumCPUs: 1}
	if kept, err := caller.RequestResources(ctx, llm, asked); err != nil || kept.NotScaled != "" {
		t.Errorf("of a managed RayCluster: %q, %v; want nothing", kept.NotScaled, err)
	}
	view := w.fleet[llm]
	view.Mode, view.Why.Message = nodepool.Shadow, "Kueue queues it"
	w.fleet[llm] = view
	kept, err := caller.RequestResources(ctx, llm, asked)
	if err != nil || kept.NotScaled != "Kueue queues it" {
		t.Errorf("of one in a queue: %q, %v; want the reason", kept.NotScaled, err)
	}
	if read := readAnswer[apiv1.Requested](t, w.call(http.MethodGet, llmPath+"/request_resources", "")); read.NotScaled != kept.NotScaled {
		t.Errorf("read %q, want the same", read.NotScaled)
	}
}

func TestARequestSaysWhyItsClusterIsNotScaled(t *testing.T) {
	w, _ := ownedFixture(t)
	const path = llmPath + "/request_resources/train"
	w.by("alice", "PUT", path, oneGPU)
	if text := w.by("bob", "GET", path, "").Body.String(); strings.Contains(text, "notScaled") {
		t.Errorf("of a managed RayCluster: %s", text)
	}
	view := w.fleet[llm]
	view.Mode, view.Why.Message = nodepool.Shadow, "frozen by somebody"
	w.fleet[llm] = view
	for _, at := range []string{path, llmPath + "/requests"} {
		if text := w.by("bob", "GET", at, "").Body.String(); !strings.Contains(text, `"code":"not_scaled"`) || !strings.Contains(text, "not scaled now: frozen by somebody") {
			t.Errorf("%s: without a status: %s", at, text)
		}
	}
	w.now = w.now.Add(time.Hour)
	answer := w.by("bob", "GET", path, "")
	loadSpec(t).mustMatch("OwnedRequest", answer.Body.Bytes())
	if text := answer.Body.String(); !strings.Contains(text, `"notScaled":"frozen by somebody"`) || !strings.Contains(text, `"state":"Expired"`) {
		t.Errorf("of a frozen one, its lease over: %s", text)
	}
}

func TestEachBadFieldOfARequestIsNamed(t *testing.T) {
	w, owned := ownedFixture(t)
	for body, want := range map[string]string{
		`{}`:                                 "leaseSeconds: want one of leaseSeconds and holdUntilDeleted",
		`{"bundles": []}`:                    "one of leaseSeconds and holdUntilDeleted",
		`{"leaseSeconds": 1, "bundles": []}`: "bundles: want at least one bundle",
		`{"leaseSeconds": 0, "bundles": [{"resources": {"GPU": 1}}]}`:                                            "leaseSeconds: want a whole number from 1 to 31536000, is 0",
		`{"leaseSeconds": 1, "holdUntilDeleted": true, "bundles": [{"resources": {"GPU": 1}}]}`:                  "one of leaseSeconds and holdUntilDeleted",
		`{"holdUntilDeleted": "yes", "bundles": [{"resources": {"GPU": 1}}]}`:                                    "holdUntilDeleted: want true or false",
		`{"leaseSeconds": 1, "bundles": [{"resources": {"GPU": 1}, "count": 0}]}`:                                "bundles[0].count: want a whole number from 1 to 10000, is 0",
		`{"leaseSeconds": 1, "bundles": [{"resources": {"GPU": 1}, "count": 10000}, {"resources": {"CPU": 1}}]}`: "bundles: want at most 10000, is 10001, the sum of all counts",
		`{"leaseSeconds": 1, "bundles": [{"resources": {"GPU": 0}}]}`:                                            "bundles[0]: want resources above 0, or a slice",
		`{"leaseSeconds": 1, "bundles": [{"resources": {"GPU": -1}}]}`:                                           "bundles[0].resources.GPU: want 0, or a number from 0.0001 to 109951162777600, is -1",
		`{"leaseSeconds": 1, "bundles": [{"GPU": 1}]}`:                                                           "bundles[0].GPU: want one of resources, count, labelSelectors, slice",
		`{"leaseSeconds": 1, "bundles": [{"slice": {"memory": "10GB"}}]}`:                                        "bundles[0].slice.memory",
		`{"leaseSeconds": 1, "owner": "eve", "bundles": [{"resources": {"GPU": 1}}]}`:                            "owner: want one of priority, allOrNothing, leaseSeconds, holdUntilDeleted, bundles",
		`{"leaseSeconds": 1, "priority": 1e10, "bundles": [{"resources": {"GPU": 1}}]}`:                          "priority: want a whole number from -2147483648 to 2147483647",
		`{"leaseSeconds": 1, "priority": 2.5e-42, "bundles": [{"resources": {"GPU": 1}}]}`:                       "priority: want a whole number from -2147483648 to 2147483647",
		`[{"resources": {"GPU": 1}}]`:                                                                            "want an object",
		`[` + strings.Repeat(`[`, 100000):                                                                        "exceeded max depth",
	} {
		answer := w.by("alice", "PUT", llmPath+"/request_resources/a", body)
		got := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || !strings.Contains(got.Detail, want) {
			t.Errorf("%.80s: %d %q, want %q", body, answer.Code, got.Detail, want)
		}
	}
	if len(owned.kept) > 0 {
		t.Errorf("a bad body is kept: %v", owned.kept)
	}
}

func TestTheStatusOfAnotherSpecIsIgnored(t *testing.T) {
	w, owned := ownedFixture(t)
	w.by("alice", "PUT", llmPath+"/request_resources/train", oneGPU)
	r := owned.kept["train"]
	r.Status = nodepool.OwnedStatus{State: raydemand.RequestSatisfied, ObservedRequest: r.Fingerprint()}
	owned.kept["train"] = r
	w.now = w.now.Add(10 * time.Second)
	r.RenewedAt = w.now
	owned.kept["train"] = r
	if text := w.by("bob", "GET", llmPath+"/request_resources/train", "").Body.String(); !strings.Contains(text, `"state":"Satisfied"`) {
		t.Errorf("a renewal forgets the state: %s", text)
	}
	r.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 3}}
	owned.kept["train"] = r
	if text := w.by("bob", "GET", llmPath+"/request_resources/train", "").Body.String(); !strings.Contains(text, `"state":"Waiting"`) {
		t.Errorf("what was asked for anew has the old state: %s", text)
	}
	w.now = w.now.Add(time.Hour)
	if text := w.by("bob", "GET", llmPath+"/request_resources/train", "").Body.String(); !strings.Contains(text, `"state":"Expired"`) {
		t.Errorf("the expired lease is not in the answer: %s", text)
	}
}

func TestThePlainRequestWorksWithoutAStoreOfOwnedOnes(t *testing.T) {
	w := newFixture(t)
	if answer := w.call("PUT", llmPath+"/request_resources/a", oneGPU); answer.Code != http.StatusNotImplemented || !strings.Contains(answer.Body.String(), "owned-requests-unavailable") {
		t.Errorf("PUT: %d %s", answer.Code, answer.Body)
	}
	if answer := w.call("POST", llmPath+"/request_resources", `{"bundles": [{"GPU": 1}]}`); answer.Code != http.StatusOK {
		t.Errorf("POST: %d %s", answer.Code, answer.Body)
	}
	answer := w.call("GET", llmPath+"/requests", "")
	if text := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(text, `"plain":true`) {
		t.Errorf("GET: %d %s", answer.Code, text)
	}
}

func TestOwnersAndNamespacesHaveLimitsOfActiveRequests(t *testing.T) {
	const body = `{"holdUntilDeleted": true, "bundles": [{"resources": {"CPU": 1}}]}`
	for name, c := range map[string]struct {
		there, status int
		owner         func(i int) string
		id            string
	}{
		"room for one":                  {maxActiveOfOwner - 1, http.StatusCreated, func(int) string { return "anonymous" }, "new"},
		"one too many of an owner":      {maxActiveOfOwner, http.StatusConflict, func(int) string { return "anonymous" }, "new"},
		"one that is there is replaced": {maxActiveOfOwner, http.StatusOK, func(int) string { return "anonymous" }, "r-0"},
		"of other owners":               {nodepool.MaxRequests - 1, http.StatusCreated, func(i int) string { return fmt.Sprint(i) }, "new"},
		"one too many of a namespace":   {nodepool.MaxRequests, http.StatusConflict, func(i int) string { return fmt.Sprint(i) }, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			owned := newFakeOwned()
			for i := range c.there {
				id := fmt.Sprintf("r-%d", i)
				owned.kept[id] = nodepool.OwnedRequest{Owned: raydemand.Owned{ID: id, Owner: c.owner(i)}, Cluster: llm}
			}
			w := newFixture(t, func(config *Config) { config.Owned = owned })
			got := w.call(http.MethodPut, llmPath+"/request_resources/"+c.id, body)
			if got.Code != c.status {
				t.Fatalf("answer %d %s, want %d", got.Code, got.Body, c.status)
			}
			if problem := readAnswer[apiv1.Problem](t, got); c.status == http.StatusConflict && (problem.Type != problemBase+"too-many-requests-kept" || !strings.Contains(problem.Detail, fmt.Sprintf("%d active requests", c.there))) {
				t.Errorf("the problem is %+v", problem)
			}
		})
	}
}

// A driver that uses one ID for each job and lets the leases expire must not block others or itself.
func TestExpiredRequestsDoNotCountAsActive(t *testing.T) {
	const body = `{"leaseSeconds": 60, "bundles": [{"resources": {"CPU": 1}}]}`
	anonymous := func(int) string { return "anonymous" }
	for name, c := range map[string]struct {
		over, held int
		owner      func(i int) string
		id         string
		status     int
	}{
		"a new one beside many that are over":         {maxActiveOfOwner, 0, anonymous, "new", http.StatusCreated},
		"of a namespace":                              {nodepool.MaxRequests, 0, func(i int) string { return fmt.Sprint(i) }, "new", http.StatusCreated},
		"one more of an owner than is kept":           {maxStoredOfOwner, 0, anonymous, "new", http.StatusConflict},
		"one that is over is asked for again":         {maxStoredOfOwner, 0, anonymous, "over-0", http.StatusOK},
		"one too many is asked for again":             {1, maxActiveOfOwner, anonymous, "over-0", http.StatusConflict},
		"one that holds is renewed where no more may": {0, maxActiveOfOwner, anonymous, "held-0", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			owned := newFakeOwned()
			keep := func(id, owner string, renewed time.Time) {
				owned.kept[id] = nodepool.OwnedRequest{Owned: raydemand.Owned{ID: id, Owner: owner}, Cluster: llm, LeaseSeconds: 60, RenewedAt: renewed}
			}
			for i := range c.over {
				keep(fmt.Sprintf("over-%d", i), c.owner(i), noon.Add(-time.Hour))
			}
			for i := range c.held {
				keep(fmt.Sprintf("held-%d", i), c.owner(i), noon)
			}
			w := newFixture(t, func(config *Config) { config.Owned = owned })
			got := w.call(http.MethodPut, llmPath+"/request_resources/"+c.id, body)
			if got.Code != c.status || c.status == http.StatusConflict && readAnswer[apiv1.Problem](t, got).Type != problemBase+"too-many-requests-kept" {
				t.Errorf("answer %d %s, want %d", got.Code, got.Body, c.status)
			}
		})
	}
}

func TestExtremeAmountsAndFractionsAreRefused(t *testing.T) {
	w := newFixture(t, func(config *Config) { config.Owned = newFakeOwned() })
	for body, field := range map[string]string{
		`{"resources": {"CPU": 109951162777600}}`:                          "",
		`{"resources": {"CPU": 900000000000000}}`:                          "bundles[0].resources.CPU",
		`{"resources": {"GPU": 1}, "slice": {"computeFraction": 0.0001}}`:  "",
		`{"resources": {"GPU": 1}, "slice": {"computeFraction": 1e-300}}`:  "bundles[0].slice.computeFraction",
		`{"resources": {"GPU": 1}, "slice": {"computeFraction": 0.00009}}`: "bundles[0].slice.computeFraction",
	} {
		got := w.call(http.MethodPut, llmPath+"/request_resources/a", `{"holdUntilDeleted": true, "bundles": [`+body+`]}`)
		if field == "" {
			if got.Code >= 300 {
				t.Errorf("%s: %d %s", body, got.Code, got.Body)
			}
			continue
		}
		if problem := readAnswer[apiv1.Problem](t, got); got.Code != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Field != field {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
}

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

func TestTheExamplesOfTheDocumentationWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/rest.md")
	must(t, err)
	since := regexp.MustCompile(`"since":"[^"]+"`)
	examples := regexp.MustCompile("(?s)request_resources -H [^\n]* -d '([^']*)'\n```\n```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 2 {
		t.Fatalf("found %d examples, want 2", len(examples))
	}
	for _, e := range examples {
		answer := newFixture(t).call(http.MethodPost, llmPath+"/request_resources", e[1])
		got := since.ReplaceAllString(strings.TrimSpace(answer.Body.String()), `"since":""`)
		if diff := cmp.Diff(since.ReplaceAllString(strings.TrimSpace(e[2]), `"since":""`), got); answer.Code != http.StatusOK || diff != "" {
			t.Errorf("%s\nstatus %d (-page +answer):\n%s\n%s", e[1], answer.Code, diff, got)
		}
	}
}
