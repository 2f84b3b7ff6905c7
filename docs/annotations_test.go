package docs

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

func TestRunningListsAllAnnotations(t *testing.T) {
	want := decode.KnownAnnotations()
	slices.Sort(want)
	if diff := cmp.Diff(want, firstColumn(between(t, "docs/running.md", "## Annotations on a RayCluster\n", "\n## "))); diff != "" {
		t.Errorf("annotations (-source +docs):\n%s", diff)
	}
}
