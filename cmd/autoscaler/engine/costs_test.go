package engine

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/cmd/autoscaler/publish"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// TestCostsAreSavedWhenTheLoopEndsByItself ends what keeps costs while the context of the process goes on.
func TestCostsAreSavedWhenTheLoopEndsByItself(t *testing.T) {
	saved := make(chan string, 10)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			saved <- r.URL.Path
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(map[string]int{http.MethodGet: http.StatusNotFound, http.MethodPatch: http.StatusOK}[r.Method])
		_, _ = io.WriteString(w, `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}}`)
	}))
	defer api.Close()
	begin, key := time.Now().Add(-time.Hour), nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
	o := options{costs: publish.NewCosts(begin, &price.Book{}), keepCosts: true}
	o.kube.LeaseNamespace, o.kube.LeaseName = "sun", "heliostat"
	pod := ledger.Pod{Account: ledger.Account{Group: "gpu", Cause: ledger.Used}, Part: 1, GPUs: 1, Hourly: 3, Created: begin, Bound: begin}
	o.costs.Ledger.Observe(ledger.Observation{At: begin, Cluster: key})
	o.costs.Ledger.Restore(key, nil)
	for minute := range 60 {
		at := begin.Add(time.Duration(minute) * time.Minute)
		o.costs.Ledger.Observe(ledger.Observation{At: at, Cluster: key, Pods: []ledger.Pod{pod}})
	}
	end, err := o.keep(t.Context(), slog.New(slog.DiscardHandler), nil, &rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	end()
	if path := <-saved; !strings.HasPrefix(path, "/api/v1/namespaces/sun/configmaps/heliostat-costs-") {
		t.Errorf("saved in %s", path)
	}
}
