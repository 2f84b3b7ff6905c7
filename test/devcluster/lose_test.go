package devcluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

func TestTheDataGoesBackToWhatWasSaved(t *testing.T) {
	c := startCluster(t, Options{Nodes: []nodeagent.NodeSpec{}})
	configMaps := c.Client().CoreV1().ConfigMaps("default")
	create := func(name string) string {
		made, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		return made.ResourceVersion
	}
	create("before")
	must(t, c.SaveData())
	create("after")
	for range 2 { // the second time, there is nothing to compact
		must(t, c.Compact(t.Context()))
	}
	down := false
	if err := c.RestoreData(t.Context(), func() {
		_, err := configMaps.Get(t.Context(), "before", metav1.GetOptions{})
		down = err != nil
	}); err != nil {
		t.Fatal(err)
	}
	if !down {
		t.Error("the API server served meanwhile")
	}
	if _, err := configMaps.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Errorf("what was saved: %v", err)
	}
	if _, err := configMaps.Get(t.Context(), "after", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what came after: %v, want that it is not found", err)
	}
}
