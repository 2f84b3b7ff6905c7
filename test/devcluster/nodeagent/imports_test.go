package nodeagent

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Each package below nodeagent imports only the packages of this module in its row.
var allowedImports = map[string][]string{
	"loopback":   {},
	"sandbox":    {},
	"rewrite":    {},
	"probe":      {},
	"objects":    {},
	"env":        {},
	"volume":     {"env", "sandbox"},
	"podruntime": {"env", "loopback", "probe", "rewrite", "sandbox", "volume"},
}

// unwelcome has the reasons why a package does not depend on others.
var unwelcome = map[string]map[string]string{
	"loopback": {"k8s.io/": "addresses and ports know no Kubernetes objects"},
	"sandbox":  {"k8s.io/": "processes know no Kubernetes objects"},
	"rewrite":  {"k8s.io/": "rewriting turns text into text"},
	"probe": {
		"k8s.io/client-go/": "probes ask containers, not the API server",
		"os/exec":           "the container runs the commands of its probes",
	},
	"env":    {"k8s.io/client-go/": "Source reads the objects, so that tests need no API server"},
	"volume": {"k8s.io/client-go/": "Source reads the objects, so that tests need no API server"},
	"podruntime": {
		"k8s.io/client-go/": "Objects reads for the pods, so that tests need no API server",
		"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil": "the provider in nodeagent connects pods to virtual-kubelet",
	},
}

func TestPackagesImportOnlyWhatTheirCommentsAllow(t *testing.T) {
	const parent = "heliostat.dev/heliostat/test/devcluster/nodeagent/"
	const module = "heliostat.dev/heliostat/"
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		name, below := strings.CutPrefix(words[0], parent)
		if !below {
			continue
		}
		allowed, listed := allowedImports[name]
		if !listed {
			t.Errorf("%s has no row in allowedImports", name)
		}
		for _, path := range words[1:] {
			if strings.HasPrefix(path, module) && !slices.Contains(allowed, strings.TrimPrefix(path, parent)) {
				t.Errorf("%s imports %s: of this module, want only %v", name, path, allowed)
			}
			for prefix, reason := range unwelcome[name] {
				if strings.HasPrefix(path, prefix) {
					t.Errorf("%s imports %s: %s", name, path, reason)
				}
			}
		}
	}
}
