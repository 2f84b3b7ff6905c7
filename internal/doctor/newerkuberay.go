package doctor

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// networkCloses reports a network policy that keeps the fleet from the GCS, the only port of Ray that it calls. A
// sidecar is in a pod of the RayCluster, which may call it.
func networkCloses(x *inventory, o *Object, report reporter) {
	policy, mode := o.raySpec().Get("networkPolicy"), o.Mode()
	sidecar := mode == "" && strings.Contains(o.raySpec().Text("autoscalerOptions", "image"), heliostatImage)
	if o.Cluster.Head.ClosedBy == "" || mode == nodepool.Off || sidecar {
		return
	}
	namespace, labels := "heliostat", any(map[string]any{"app.kubernetes.io/name": "heliostat"})
	fleet, found := x.onlyService()
	if found {
		namespace, labels = fleet.Namespace, fleet.Root().Get("spec", "selector", "matchLabels").Raw()
	}
	rule := map[string]any{
		"from": []any{map[string]any{
			"namespaceSelector": matching(map[string]any{"kubernetes.io/metadata.name": namespace}),
			"podSelector":       matching(labels),
		}},
		"ports": []any{map[string]any{"port": o.Cluster.Head.GCSPort, "protocol": "TCP"}},
	}
	change := patch(o, appendTo(o, policy.Get("head", "ingressRules"), rule))
	if !found {
		change = change.Hint("use the namespace and the labels of your Heliostat")
	}
	report(occurrence{Object: o, Path: policy.Path("head", "ingressRules"), Why: o.Cluster.Head.ClosedBy +
		", so the fleet cannot read what Ray asks for, and scales nothing", Fix: change,
		Seen: orNotSet(policy.Get("head", "ingressRules").String())})
}

// matching returns the label selector of these labels.
func matching(labels any) map[string]any { return map[string]any{"matchLabels": labels} }
