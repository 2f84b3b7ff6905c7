package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// costly returns a ledger: during the last hour, ml/llm used one worker of 2 GPUs at 2 an hour, and had one of 4 GPUs at
// 4 an hour idle because of why. ops/etl used one worker without GPUs and without a price.
func costly(why string) *ledger.Ledger {
	return costlyAlso(why, nodepool.ClusterKey{Namespace: "ops", Name: "etl"})
}

// costlyAlso returns the same with another RayCluster than ops/etl.
func costlyAlso(why string, etl nodepool.ClusterKey) *ledger.Ledger {
	begin := noon.Add(-time.Hour)
	l := ledger.New(ledger.Limits{})
	pod := func(group, owner string, cause ledger.Cause, why string, gpus float64) ledger.Pod {
		return ledger.Pod{Account: ledger.Account{Group: group, Owner: owner, Cause: cause, Why: why}, Part: 1, GPUs: gpus,
			Hourly: gpus, Unpriced: gpus == 0}
	}
	for at := begin; !at.After(noon); at = at.Add(time.Minute) {
		l.Observe(ledger.Observation{At: at, Cluster: llm, Pods: []ledger.Pod{pod("small", "RayJob/a", ledger.Used, "", 2),
			pod("large", "RayJob/a", ledger.Idle, why, 4)}})
		l.Observe(ledger.Observation{At: at, Cluster: etl, Pods: []ledger.Pod{pod("cpu", "RayCluster/etl", ledger.Used, "", 0)}})
	}
	return l
}

func costsFixture(t *testing.T, why string) *fixture {
	return newFixture(t, func(c *Config) { c.Costs, c.Currency = costly(why), "USD" })
}

func TestCostsAreAddedUpByWhatIsAsked(t *testing.T) {
	w := costsFixture(t, "minimum")
	api := dial(t, w.handler)
	item := func(namespace, cluster, group, owner, cause, why string, gpus float64) apiv1.CostItem {
		i := apiv1.CostItem{Namespace: namespace, Cluster: cluster, Group: group, Owner: owner, Cause: cause, Why: why, PodSeconds: 3600,
			GpuSeconds: 3600 * gpus, Cost: gpus}
		if gpus == 0 {
			i.UnpricedPodSeconds = 3600
		}
		return i
	}
	for by, want := range map[apiv1.CostsBy][]apiv1.CostItem{
		"": {item("ml", "llm", "", "", "idle", "minimum", 4), item("ml", "llm", "", "", "used", "", 2), item("ops", "etl", "", "", "used", "", 0)},
		apiv1.CostsByGroup: {item("ml", "llm", "large", "", "idle", "minimum", 4), item("ml", "llm", "small", "", "used", "", 2),
			item("ops", "etl", "cpu", "", "used", "", 0)},
		apiv1.CostsByOwner: {item("ml", "", "", "RayJob/a", "idle", "minimum", 4), item("ml", "", "", "RayJob/a", "used", "", 2),
			item("ops", "", "", "RayCluster/etl", "used", "", 0)},
		apiv1.CostsByCause: {item("", "", "", "", "idle", "minimum", 4),
			{Cause: "used", PodSeconds: 7200, GpuSeconds: 7200, Cost: 2, UnpricedPodSeconds: 3600}},
	} {
		got, err := api.Costs(context.Background(), by, "")
		if diff := cmp.Diff(want, got.Items, cmpopts.EquateApprox(1e-9, 1e-9)); err != nil || diff != "" {
			t.Errorf("by %q: %v (-want +got):\n%s", by, err, diff)
		}
		if !got.Until.Equal(noon) || !got.Since.Equal(noon.Add(-time.Hour)) || got.Currency != "USD" {
			t.Errorf("by %q: %+v", by, got)
		}
	}
	ops, err := api.Costs(context.Background(), apiv1.CostsByCluster, "ops")
	if err != nil || len(ops.Items) != 1 || ops.Items[0].PodSeconds != 3600 {
		t.Errorf("of ops: %v, %+v", err, ops.Items)
	}
	answer := w.call(http.MethodGet, "/v1/costs", "")
	loadSpec(t).mustMatch("Costs", answer.Body.Bytes())
}

func TestWhatIsIdleComesWithItsCostAndReason(t *testing.T) {
	got, err := dial(t, costsFixture(t, "holds_objects").handler).Costs(context.Background(), "", "")
	if err != nil || len(got.Idle) != 1 {
		t.Fatalf("%v, %+v", err, got.Idle)
	}
	if idle := got.Idle[0]; idle.Message != "4 of 6 GPUs are idle; idle GPUs have cost 4.00 USD in 60m (holds_objects)" ||
		idle.Command != "autoscaler explain ml/llm --group large" {
		t.Errorf("%s\n%s", idle.Message, idle.Command)
	}
	for want, s := range map[string]ledger.Streak{
		"0.5 of 8 GPUs are idle, the first for 2m (kept)":                       {AllGPUs: 8, GPUs: 0.5},
		"1 of 3 workers are idle; idle workers have cost 0.50 USD in 2m (kept)": {AllPods: 3, Pods: 1, Money: 0.5},
	} {
		s.Since, s.Why = noon.Add(-2*time.Minute), "kept"
		if text := idleMessage(&s, "USD", noon); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}

func TestABadQuestionAboutCostsIsNamed(t *testing.T) {
	w := costsFixture(t, "minimum")
	for query, want := range map[string]string{
		"since=24h":  "one of the parameters by, namespace",
		"by=weekday": "by",
	} {
		if answer := w.call(http.MethodGet, "/v1/costs?"+query, ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
	if answer := newFixture(t).call(http.MethodGet, "/v1/costs", ""); answer.Code != http.StatusOK {
		t.Errorf("without a ledger: %d", answer.Code)
	} else {
		loadSpec(t).mustMatch("Costs", answer.Body.Bytes())
	}
}

// TestEachShardAnswersWithTheCostsOfAll has two shards with one RayCluster each, of one owner.
func TestEachShardAnswersWithTheCostsOfAll(t *testing.T) {
	d := newDividedWith(t, func(i int, c *Config) {
		c.Currency = "USD"
		c.Now = func() time.Time { return noon }
		begin := noon.Add(-time.Duration(1+i) * time.Minute)
		l := ledger.New(ledger.Limits{})
		key := nodepool.ClusterKey{Namespace: "ml", Name: [2]string{"zeta", "alpha"}[i]}
		pod := ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: ledger.Idle, Why: "minimum"}, Part: 1, GPUs: 1,
			Hourly: float64(60 * (2 - i))}
		l.Observe(ledger.Observation{At: begin, Cluster: key, Pods: []ledger.Pod{pod}})
		c.Costs = l
	})
	for _, server := range d.servers {
		response, text := ask(t, server, http.MethodGet, "/v1/costs?by=owner", "")
		var got apiv1.Costs
		if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %s: %s", err, response.Status, text)
		}
		if len(got.Items) != 1 || got.Items[0].Cost < 3.99 || got.Items[0].Cost > 4.01 || got.Items[0].PodSeconds != 180 {
			t.Errorf("items %+v", got.Items)
		}
		clusters := []string{}
		for _, idle := range got.Idle {
			clusters = append(clusters, idle.Cluster)
		}
		if !slices.Equal(clusters, []string{"alpha", "zeta"}) || !got.Since.Equal(noon.Add(-time.Minute)) {
			t.Errorf("idle %v, since %v", clusters, got.Since)
		}
		response, text = ask(t, server, http.MethodGet, "/v1/costs", "")
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Items) != 2 || got.Items[0].Cluster != "alpha" {
			t.Errorf("%v, %s: %s", err, response.Status, text)
		}
	}
}
