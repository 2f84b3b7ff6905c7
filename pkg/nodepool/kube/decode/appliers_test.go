package decode

import "testing"

func TestWhoAppliesTheWorkerGroupsFromElsewhereIsKnownByManagedFields(t *testing.T) {
	const groups = `{f:spec: {f:workerGroupSpecs: {}}}`
	tests := []struct {
		name, entries, want string
	}{
		{"nobody", `[]`, ""},
		{"a person by hand", `[{manager: kubectl-create, operation: Update, fieldsV1: ` + groups + `}, {manager: kubectl-edit, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"a person by client-side apply", `[{manager: kubectl-client-side-apply, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"we ourselves", `[{manager: heliostat, operation: Update, fieldsV1: ` + groups + `}]`, ""},
		{"the operator's status", `[{manager: manager, operation: Update, subresource: status, fieldsV1: {f:status: {}}}]`, ""},
		{"server-side apply", `[{manager: kubectl, operation: Apply, fieldsV1: ` + groups + `}]`, "kubectl, by server-side apply"},
		{"an applier from whom our patch of replicas took the list", `[{manager: platform, operation: Apply, fieldsV1: {f:spec: {f:rayVersion: {}}}}, {manager: heliostat, operation: Update, fieldsV1: ` + groups + `}]`, "platform, by server-side apply"},
		{"an applier of labels only", `[{manager: labeller, operation: Apply, fieldsV1: {f:metadata: {f:labels: {}}}}]`, ""},
		{"Argo CD's own apply", `[{manager: argocd-controller, operation: Update, fieldsV1: ` + groups + `}]`, "Argo CD (argocd-controller)"},
		{"Flux", `[{manager: kustomize-controller, operation: Apply, fieldsV1: ` + groups + `}]`, "kustomize-controller, by server-side apply"},
		{"Helm", `[{manager: Helm, operation: Update, fieldsV1: ` + groups + `}]`, "Helm (Helm)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := objectOf(t, "{metadata: {managedFields: "+test.entries+"}}")
			if got := AppliedBy(FieldsOf(object, nil).Object("metadata")); got != test.want {
				t.Errorf("applied by %q, want %q", got, test.want)
			}
		})
	}
}
