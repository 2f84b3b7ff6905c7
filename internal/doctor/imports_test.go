package doctor_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Findings must follow from the objects alone.
func TestThePackageStaysPure(t *testing.T) {
	unwelcome := map[string]string{
		"os": "it would depend on the machine", "net": "it would talk to somebody", "log": "pure code reports by its results",
		"log/slog": "pure code reports by its results", "math/rand": "equal input must give equal findings", "math/rand/v2": "equal input must give equal findings",
		"os/exec": "it would depend on the machine", "time": "a finding does not depend on when it is looked for", "io": "reading is for package intake",
	}
	for _, name := range list(t, "{{join .Imports \"\\n\"}}") {
		if reason, is := unwelcome[name]; is {
			t.Errorf("imports %s: %s", name, reason)
		}
		if strings.HasPrefix(name, "k8s.io/") && name != "k8s.io/apimachinery/pkg/api/resource" {
			t.Errorf("imports %s: of Kubernetes only quantities are needed", name)
		}
		if strings.HasSuffix(name, "/kube") || strings.HasSuffix(name, "/gcs") {
			t.Errorf("imports %s: adapters read, and package intake knows them", name)
		}
	}
}

func list(t *testing.T, template string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", template, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}
