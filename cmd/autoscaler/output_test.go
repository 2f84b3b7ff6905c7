package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTextAndTableAreOneOutput(t *testing.T) {
	const snapshot, node = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}}]}`, `{"kind": "Node", "metadata": {"name": "n1"}}`
	for _, c := range []struct {
		stdin string
		argv  []string
	}{
		{snapshot, []string{"plan", "--snapshot", "-"}},
		{snapshot, []string{"explain", "--snapshot", "-", "--group", "cpu"}},
		{node, []string{"nodepools", "-f", "-"}},
		{"", []string{"gpus"}}, // fails alike where there is no driver
	} {
		with := func(output string) string {
			_, out, errOut := command(t, c.stdin, slices.Concat([]string{"autoscaler"}, c.argv, []string{"-o", output})...)
			return out + errOut
		}
		text, table := with("text"), with("table")
		if text != table || text == "" || strings.HasPrefix(text, "{") || strings.Contains(text, "--output") {
			t.Errorf("%v: -o table is %q, -o text is %q", c.argv, table, text)
		}
	}
}
