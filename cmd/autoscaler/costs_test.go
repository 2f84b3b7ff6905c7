package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
)

func TestCostsAreShownInEachForm(t *testing.T) {
	newRemote(t)
	code, out, errs := command(t, "", "autoscaler", "costs", "-o", "json", "--by", "group")
	var costs apiv1.Costs
	if err := json.Unmarshal([]byte(out), &costs); code != cli.ExitOK || err != nil || len(costs.Items) != 2 || costs.Items[0].Group != "gpu" {
		t.Errorf("%d, %v: %s%s", code, err, out, errs)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-n", "other"}, cli.ExitOK, "nothing has been added up"},
		{[]string{"-n", "mll"}, cli.ExitOK, "autoscaler: note: there is no RayCluster in namespace mll; there are RayClusters in ml; did you mean ml?"},
		{[]string{"-o", "yaml"}, cli.ExitOK, "currency: USD"},
		{[]string{"-o", "xml"}, cli.ExitBadInput, `--output "xml": want table, json, yaml or csv`},
		{[]string{"--by", "day"}, cli.ExitBadInput, "cluster, group, owner, job or cause"},
		{[]string{"--since", "7d"}, cli.ExitBadInput, "--since was removed; sum heliostat_cost_total in Prometheus"},
	} {
		code, out, errs := command(t, "", append([]string{"autoscaler", "costs"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v: %d: %s%s, want %q", c.args, code, out, errs, c.want)
		}
	}
}

func TestAnErrorInTheFileOfPricesNamesItsField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte("instanceTypes: {p4d.24xlarge: -2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := command(t, "", "autoscaler", "serve", "--prices", file)
	if want := "reading prices from " + file + ": instanceTypes.p4d.24xlarge: price -2: want 0 to 1000000000"; code != cli.ExitBadInput || !strings.Contains(errs, want) {
		t.Errorf("%d: %s, want %q", code, errs, want)
	}
}

func TestTheExampleOfPricesIsRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	file := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil || !found {
		t.Fatal(err, found)
	}
	book, err := cli.ReadPrices(file)
	if err != nil || book.Currency != "USD" || len(book.Pools) != 1 || len(book.Spot) != 1 || len(book.InstanceTypes) != 1 || book.WithoutLists {
		t.Errorf("%v: %+v", err, book)
	}
}

// TestHelpSaysWhichNamespaceCounts: commands that list take no namespace from the kubeconfig.
func TestHelpSaysWhichNamespaceCounts(t *testing.T) {
	for name, want := range map[string]string{"costs": "(default: of all that you may list)",
		"explain": "(default: that of the kubeconfig's context, or default)"} {
		if _, out, _ := command(t, "", "autoscaler", name, "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s: the help of --namespace lacks %q:\n%s", name, want, out)
		}
	}
}
