package main

import (
	"strings"
	"testing"
)

func TestTheLastLinesAreCommandsThatRunAsPrinted(t *testing.T) {
	var out strings.Builder
	n := &narrator{out: &out}
	n.further("/run/kubeconfig", "http://127.0.0.1:4711", "/built/bin/autoscaler", false)
	for _, want := range []string{
		`export PATH="/built/bin:$PATH" HELIOSTAT_SERVER=http://127.0.0.1:4711`, "autoscaler status ray/demo ", "export KUBECONFIG=/run/kubeconfig",
		"kubectl --name " + clusterName() + " get pods -n ray)",
		"autoscaler request ray/demo ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want in it %q, got\n%s", want, out.String())
		}
	}
	// What ends now has nothing that could be looked at.
	out.Reset()
	n.further("/run/kubeconfig", "http://127.0.0.1:4711", "/built/bin/autoscaler", true)
	if got := out.String(); strings.Contains(got, "4711") || strings.Contains(got, "KUBECONFIG") || !strings.Contains(got, "without DEMO_EXIT") {
		t.Errorf("at the end it is said\n%s", got)
	}
}
