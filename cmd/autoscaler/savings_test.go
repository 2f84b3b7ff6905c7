package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// Savings returns a lower minimum that would have saved something, and a longer timeout that would not.
func (r *remote) Savings(since time.Time) []apiv1.SavingItem {
	item := apiv1.SavingItem{Namespace: "ml", Cluster: "llm", Group: "gpu", Kind: "min_replicas", From: 2, To: 0, Since: since, Cost: 72,
		WouldCost: 60, Saves: 12, SavedGpuSeconds: 14400, MoreStarts: 1, MoreWaitedSeconds: 95, Why: "minReplicas alone kept these workers",
		Change: "kubectl patch raycluster llm -n ml"}
	longer := item
	longer.Kind, longer.To, longer.WouldCost, longer.Saves = "idle_timeout", 1800, 80, -8
	return []apiv1.SavingItem{item, longer}
}

func TestJobsAreNotReadTooOften(t *testing.T) {
	code, _, errs := command(t, "", "autoscaler", "serve", "--jobs-every", "1s")
	if want := "0, or a duration from 10s to 24h"; code != cli.ExitBadInput || !strings.Contains(errs, want) {
		t.Errorf("%d: %s, want %q", code, errs, want)
	}
}

func TestSavingsAreShownInEachForm(t *testing.T) {
	newRemote(t)
	code, out, errs := command(t, "", "autoscaler", "savings", "-o", "json")
	var savings apiv1.Savings
	if err := json.Unmarshal([]byte(out), &savings); code != cli.ExitOK || err != nil || len(savings.Items) != 2 || savings.Currency != "USD" {
		t.Errorf("%d, %v: %s%s", code, err, out, errs)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.ExitOK, "minReplicas 2 to 0"},
		{[]string{"--all"}, cli.ExitOK, "idle timeout 2s to 30m"},
		{[]string{"-n", "other"}, cli.ExitOK, "Nothing is known that would have cost less"},
		{[]string{"-n", "mll"}, cli.ExitOK, "there is no RayCluster in namespace mll; there are RayClusters in ml; did you mean ml?"},
		{[]string{"-o", "yaml"}, cli.ExitOK, "kind: min_replicas"},
		{[]string{"-o", "csv"}, cli.ExitOK, "ml,llm,gpu,min_replicas,2,0,"},
		{[]string{"-o", "xml"}, cli.ExitBadInput, `--output "xml": want table, json, yaml or csv`},
		{[]string{"--since", "40d"}, cli.ExitBadInput, `--since "40d": want minutes, hours or days up to 30d, such as 90m, 24h or 7d`},
	} {
		code, out, errs := command(t, "", append([]string{"autoscaler", "savings"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v: %d: %s%s, want %q", c.args, code, out, errs, c.want)
		}
	}
}
