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

func TestWhatIsNoListOfObjectsIsShown(t *testing.T) {
	const want = ": want Node objects as the API prints them: a list, or an object with items"
	for text, begins := range map[string]string{`7`: "kubeNodes: 7", `["n"]`: `kubeNodes: ["n"]`,
		`{"items": "n"}`: `kubeNodes.items: "n"`, `{}`: "kubeNodes: an object without items"} {
		if _, err := objectsOf([]byte(text), "kubeNodes", "Node"); err == nil || err.Error() != begins+want {
			t.Errorf("%s: %v, want %s%s", text, err, begins, want)
		}
	}
}
