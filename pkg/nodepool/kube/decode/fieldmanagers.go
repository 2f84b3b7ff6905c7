package decode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// scaledBy returns the field manager that last wrote the worker groups of a RayCluster, or "". To the API server the
// list of groups is one value, so the last writer of any replicas owns all of it
// (docs/reference/facts.md#owner-of-the-worker-groups). An entry without fields is what keepScaler leaves of the right
// one.
func scaledBy(metadata Fields) string {
	manager, latest := "", time.Time{}
	for _, entry := range metadata.Objects("managedFields") {
		if entry.Has("fieldsV1") && !entry.Object("fieldsV1").Object("f:spec").Has("f:workerGroupSpecs") {
			continue
		}
		if at, err := time.Parse(time.RFC3339, entry.Text("time")); err == nil && !at.Before(latest) {
			manager, latest = entry.Text("manager"), at
		}
	}
	return manager
}

// keepScaler drops managedFields, which may be larger than everything else, except for the name that scaledBy reads.
func keepScaler(rayCluster *unstructured.Unstructured) {
	entries := rayCluster.GetManagedFields()
	report := &Report{} // Decode reports what cannot be read
	metadata := FieldsOf(rayCluster.Object, report).Object("metadata")
	manager := scaledBy(metadata)
	rayCluster.SetManagedFields(nil)
	for _, entry := range slices.Backward(entries) {
		if manager != "" && entry.Manager == manager {
			entry.FieldsV1 = nil
			rayCluster.SetManagedFields(append(entries[:0:0], entry))
			return
		}
	}
}

// appliers are words in the names of field managers of programs that apply the same manifest repeatedly: Argo CD, Flux,
// Helm, Terraform, Pulumi, Crossplane, Rancher Fleet, kapp and Config Sync. Programs that use server-side apply need
// none.
var appliers = regexp.MustCompile(
	"argocd|kustomize-controller|helm|flux|terraform|pulumi|crossplane|fleet|kapp|configsync")

// AppliedBy returns which field manager applies the worker groups and would overwrite a number of GPUs, or "".
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
		if Applies(manager) {
			return manager
		}
	}
	return ""
}

// Applies reports whether a program that applies the same manifest repeatedly has this field manager.
func Applies(manager string) bool { return appliers.MatchString(strings.ToLower(manager)) }
