package manifests

import "testing"

func TestNodesAreReadAsKubectlPrintsThem(t *testing.T) {
	const node = `{"kind": "Node", "metadata": {"name": "n"}}`
	for _, text := range []string{`[` + node + `]`, `{"kind": "List", "items": [` + node + `]}`, `{"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}`, node} {
		items, err := objectsOf([]byte(text), "kubeNodes", "Node")
		if err != nil || len(items) != 1 {
			t.Errorf("%s: %v, %v", text, items, err)
		}
	}
}
