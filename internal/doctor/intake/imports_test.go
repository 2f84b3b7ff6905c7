package intake

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestIntakeReadsAndExaminesNothing(t *testing.T) {
	importtest.Only(t, "api/v1alpha1", "internal/doctor/inventory", "internal/fieldpath", "pkg/nodepool", "pkg/nodepool/kube/made", "pkg/nodepool/kube/nodeobject",
		"pkg/nodepool/kube/policies", "pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/requests", "pkg/nodepool/nodegpu", "pkg/nodepool/pools")
	importtest.Imports(t, map[string]string{
		"os/exec": "intake only gets and lists",
	})
}
