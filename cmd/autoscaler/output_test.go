package main

import (
	"strings"
	"testing"
)

func TestTextAndTableAreOneOutput(t *testing.T) {
	const snapshot, node = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}}]}`, `{"kind": "Node", "metadata": {"name": "n1"}}`
	for stdin, argv := range map[string][]string{
		snapshot:       {"plan", "--snapshot", "-"},
		snapshot + " ": {"explain", "--snapshot", "-", "--group", "cpu"},
		node:           {"nodepools", "-f", "-"},
	} {
		argv = append([]string{"autoscaler"}, argv...)
		code, text, errOut := command(t, stdin, append(argv, "-o", "text")...)
		if code != exitOK || text == "" || strings.HasPrefix(text, "{") {
			t.Errorf("%v -o text: exit %d %s\n%s", argv, code, errOut, text)
		}
		if _, table, errOut := command(t, stdin, append(argv, "-o", "table")...); table != text {
			t.Errorf("%v: -o table is %q %s, -o text is %q", argv, table, errOut, text)
		}
	}
}
