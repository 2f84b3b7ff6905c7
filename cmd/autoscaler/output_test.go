package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
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
		{node, []string{"doctor", "-f", "-"}},
		{"", []string{"gpus"}}, // fails in the same way on a machine without a driver
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

func TestYAMLHasTheKeysOfJSON(t *testing.T) {
	const snapshot, node = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}}]}`, `{"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"nvidia.com/gpu": "eight"}}}`
	for _, c := range []struct {
		stdin string
		argv  []string
	}{
		{snapshot, []string{"plan", "--snapshot", "-"}},
		{node, []string{"nodepools", "-f", "-"}},
		{node, []string{"doctor", "-f", "-"}},
	} {
		var read [2]any
		for i, output := range []string{"json", "yaml"} {
			_, out, errOut := command(t, c.stdin, slices.Concat([]string{"autoscaler"}, c.argv, []string{"-o", output})...)
			if err := yaml.Unmarshal([]byte(out), &read[i]); err != nil || strings.HasPrefix(out, "{") != (output == "json") {
				t.Fatalf("%v -o %s: %v: %s%s", c.argv, output, err, out, errOut)
			}
		}
		if diff := cmp.Diff(read[0], read[1]); diff != "" || read[0] == nil {
			t.Errorf("%v (-json +yaml):\n%s", c.argv, diff)
		}
	}
}
