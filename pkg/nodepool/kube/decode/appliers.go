package decode

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// appliers are programs that apply the same manifest repeatedly, by words in the names of their field managers.
// Programs that use server-side apply need no row.
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

// AppliedBy returns which program applies the worker groups and would overwrite a number of GPUs, or "".
//
// To the API server the list of worker groups is one value (x-kubernetes-list-type is atomic), so the last writer of
// any part owns all of it; each patch of replicas takes it from an applier until the applier writes again. A program
// that applies other parts of the spec counts too: the groups are in the same manifest
// (docs/reference/facts.md#owner-of-the-worker-groups).
func AppliedBy(metadata Fields) string {
	for _, entry := range metadata.Objects("managedFields") {
		manager, operation := entry.Text("manager"), entry.Text("operation")
		if manager == nodepool.FieldManager || entry.Text("subresource") != "" ||
			!entry.Object("fieldsV1").Has("f:spec") {
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
