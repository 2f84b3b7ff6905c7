package kube

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// fieldManager is the name under which Heliostat writes.
const fieldManager = "heliostat"

// appliers are programs that write the same manifest again and again, by words in the names of their field managers. Those that use
// server-side apply need not stand here.
var appliers = []struct{ word, program string }{
	{"argocd", "Argo CD"},
	{"kustomize-controller", "Flux"},
	{"helm", "Helm"}, // Flux's helm-controller too
	{"flux", "Flux"},
	{"terraform", "Terraform"},
	{"pulumi", "Pulumi"},
	{"crossplane", "Crossplane"},
	{"fleet", "Rancher Fleet"},
	{"kapp", "kapp"},
	{"configsync", "Config Sync"},
}

// appliedElsewhere says who applies the worker groups from elsewhere and would write a number of GPUs back, or "".
//
// To the API server the list of worker groups is one value (x-kubernetes-list-type is atomic), so whoever wrote any of it last owns
// all of it; each patch of replicas takes it from an applier until that applies again. So somebody who applies other parts of the
// spec counts too: the groups are in the same manifest (docs/reference/facts.md#owner-of-the-worker-groups).
func appliedElsewhere(metadata fields) string {
	for _, entry := range metadata.objects("managedFields") {
		manager, operation := entry.text("manager"), entry.text("operation")
		if manager == fieldManager || entry.text("subresource") != "" || !entry.object("fieldsV1").has("f:spec") {
			continue
		}
		if operation == "Apply" {
			return fmt.Sprintf("%s, by server-side apply", manager)
		}
		for _, row := range appliers {
			if strings.Contains(strings.ToLower(manager), row.word) {
				return fmt.Sprintf("%s (%s)", row.program, manager)
			}
		}
	}
	return ""
}

// refuseSync says why the object as it is now forbids the change, or nil.
func refuseSync(object map[string]any, cluster *nodepool.Cluster, change nodepool.NumGPUsChange) *nodepool.SyncRefusal {
	for _, target := range change.Targets {
		group, there := cluster.Group(target.Group)
		if !there {
			continue // a conflict
		}
		if refusal := cluster.SyncRefusal(group); refusal != nil {
			return refusal
		}
	}
	metadata := fields{values: object, report: &findings{}}.object("metadata")
	if manager := appliedElsewhere(metadata); manager != "" {
		return &nodepool.SyncRefusal{Code: nodepool.SyncFieldManaged,
			Why: "the worker groups are applied by " + manager + ", which would write them back: set the number there"}
	}
	return nil
}
