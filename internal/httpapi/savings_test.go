package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
)

// advice returns the same changes each time, and remembers since when they were asked for.
type advice struct {
	items []apiv1.SavingItem
	since time.Time
}

func (a *advice) Savings(since time.Time) []apiv1.SavingItem {
	a.since = since
	return a.items
}

func saving(namespace, cluster string, saves float64) apiv1.SavingItem {
	return apiv1.SavingItem{Namespace: namespace, Cluster: cluster, Group: "gpu", Kind: "idle_timeout", From: 600, To: 60, Since: noon,
		Cost: 10, WouldCost: 10 - saves, Saves: saves, SavedGpuSeconds: 100, Why: "why", Change: "kubectl edit"}
}

func TestSavingsAreThoseOfTheNamespacesThatAreAskedFor(t *testing.T) {
	a := &advice{items: []apiv1.SavingItem{saving("ml", "llm", 4), saving("ops", "etl", 2)}}
	w := newFixture(t, func(c *Config) { c.Savings, c.Currency = a, "EUR" })
	got, err := dial(t, w.handler).Savings(context.Background(), "", "")
	if err != nil || len(got.Items) != 2 || got.Items[0].Saves != 4 || got.Currency != "EUR" || !a.since.Equal(noon.Add(-7*24*time.Hour)) {
		t.Errorf("%v: %+v since %v", err, got, a.since)
	}
	got, err = dial(t, w.handler).Savings(context.Background(), "24h", "ops")
	if err != nil || len(got.Items) != 1 || got.Items[0].Cluster != "etl" || !a.since.Equal(noon.Add(-24*time.Hour)) {
		t.Errorf("of ops: %v: %+v since %v", err, got, a.since)
	}
	loadSpec(t).mustMatch("Savings", w.call(http.MethodGet, "/v1/savings", "").Body.Bytes())
	loadSpec(t).mustMatch("Savings", newFixture(t).call(http.MethodGet, "/v1/savings", "").Body.Bytes())
	if answer := w.call(http.MethodGet, "/v1/savings?since=31d", ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "up to 30d") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestEachShardAnswersWithTheSavingsOfAll(t *testing.T) {
	d := newDividedWith(t, func(i int, c *Config) {
		c.Savings = &advice{items: []apiv1.SavingItem{saving("ml", [2]string{"zeta", "alpha"}[i], float64(1+i))}}
	})
	for _, server := range d.servers {
		response, text := ask(t, server, http.MethodGet, "/v1/savings", "")
		var got apiv1.Savings
		if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %s: %s", err, response.Status, text)
		}
		if len(got.Items) != 2 || got.Items[0].Cluster != "alpha" || got.Items[1].Cluster != "zeta" {
			t.Errorf("%+v", got.Items)
		}
	}
}

// TestShardsOrderWhatHasNoPriceAlike has changes that save no money: each shard has some of them.
func TestShardsOrderWhatHasNoPriceAlike(t *testing.T) {
	unpriced := func(cluster string, pods float64) apiv1.SavingItem {
		item := saving("ml", cluster, 0)
		item.SavedPodSeconds = pods
		return item
	}
	d := newDividedWith(t, func(i int, c *Config) {
		c.Savings = &advice{items: [][]apiv1.SavingItem{{unpriced("b", 10), unpriced("d", 0)}, {unpriced("a", 20), unpriced("c", 0)}}[i]}
	})
	for _, server := range d.servers {
		_, text := ask(t, server, http.MethodGet, "/v1/savings", "")
		var got apiv1.Savings
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, item := range got.Items {
			names += item.Cluster
		}
		if names != "abcd" {
			t.Errorf("%s comes in the order %q", text, names)
		}
	}
}

func TestAnswersReachAsFarBackAsTheLedgerKeeps(t *testing.T) {
	if apiv1.MostSince != ledger.Retention {
		t.Errorf("up to %v, and amounts are kept for %v", apiv1.MostSince, ledger.Retention)
	}
}
