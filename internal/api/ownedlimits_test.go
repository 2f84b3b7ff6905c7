package api

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
		over, held   int
		owner        func(i int) string
		method, path string
		status       int
	}{
		"a new one beside many that are over":         {maxActiveOfOwner, 0, anonymous, http.MethodPut, "new", http.StatusCreated},
		"of a namespace":                              {nodepool.MaxRequests, 0, func(i int) string { return fmt.Sprint(i) }, http.MethodPut, "new", http.StatusCreated},
		"one more of an owner than is kept":           {maxStoredOfOwner, 0, anonymous, http.MethodPut, "new", http.StatusConflict},
		"one that is over is asked for again":         {maxStoredOfOwner, 0, anonymous, http.MethodPut, "over-0", http.StatusOK},
		"one that is over is renewed":                 {maxStoredOfOwner, 0, anonymous, http.MethodPost, "over-0/renew", http.StatusOK},
		"one too many is asked for again":             {1, maxActiveOfOwner, anonymous, http.MethodPut, "over-0", http.StatusConflict},
		"one too many is renewed":                     {1, maxActiveOfOwner, anonymous, http.MethodPost, "over-0/renew", http.StatusConflict},
		"one that holds is renewed where no more may": {0, maxActiveOfOwner, anonymous, http.MethodPost, "held-0/renew", http.StatusOK},
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
			sent := body
			if c.method == http.MethodPost {
				sent = ""
			}
			got := w.call(c.method, llmPath+"/request_resources/"+c.path, sent)
			if got.Code != c.status || c.status == http.StatusConflict && readAnswer[apiv1.Problem](t, got).Type != problemBase+"too-many-requests-kept" {
				t.Errorf("answer %d %s, want %d", got.Code, got.Body, c.status)
			}
		})
	}
}

func TestListsShowTheFirstBundlesOnly(t *testing.T) {
	one := raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: 1}
	wide := one
	wide.Selectors = []raydemand.Selector{{{Key: "zone", Op: raydemand.In, Values: slices.Repeat([]string{"z"}, maxListedTerms)}}}
	for name, c := range map[string]struct {
		bundles     []raydemand.Request
		shown, more int
	}{
		"few":          {slices.Repeat([]raydemand.Request{one}, maxListedBundles), maxListedBundles, 0},
		"many":         {slices.Repeat([]raydemand.Request{one}, 100), maxListedBundles, 100 - maxListedBundles},
		"a wide one":   {[]raydemand.Request{one, wide, one}, 1, 2},
		"nothing more": {[]raydemand.Request{wide}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			owned := newFakeOwned()
			owned.kept["a"] = nodepool.OwnedRequest{Owned: raydemand.Owned{ID: "a", Owner: "anonymous", Requests: c.bundles}, Cluster: llm}
			w := newFixture(t, func(config *Config) { config.Owned = owned })
			w.requests.kept[llm] = c.bundles
			for _, path := range []string{"/v1/requests", llmPath + "/requests"} {
				for _, r := range readAnswer[apiv1.RequestList](t, w.call(http.MethodGet, path, "")).Items {
					if len(r.Bundles) != c.shown || r.MoreBundles != c.more {
						t.Errorf("%s shows %d bundles of %q and %d more, want %d and %d", path, len(r.Bundles), r.ID, r.MoreBundles, c.shown, c.more)
					}
				}
			}
			whole := readAnswer[apiv1.OwnedRequest](t, w.call(http.MethodGet, llmPath+"/request_resources/a", ""))
			if len(whole.Bundles) != len(c.bundles) || whole.MoreBundles != 0 {
				t.Errorf("the request itself has %d bundles and %d more", len(whole.Bundles), whole.MoreBundles)
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

func TestARateThatIsNotANumberIsInvalid(t *testing.T) {
	for _, perSecond := range []float64{math.NaN(), -1, math.Inf(1)} {
		if err := (Config{Fleet: fakeFleet{}, Requests: &fakeRequests{}, RequestsPerSecond: perSecond}).Validate(); err == nil {
			t.Errorf("%g calls a second are taken", perSecond)
		}
	}
}
