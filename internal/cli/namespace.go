package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
)

// EmptyNamespace says that the namespace of -n has no RayCluster, and where there are some; empty if it has one. Ask
// after an answer without content. Only RayClusters that the caller may see are listed, so nothing is revealed.
func (f *ServerFlags) EmptyNamespace(ctx context.Context, api *apiv1.Client) string {
	if f.Namespace == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	clusters, err := api.Clusters(ctx, "")
	if err != nil {
		return ""
	}
	var namespaces []string
	for _, c := range clusters {
		namespaces = append(namespaces, c.Namespace)
	}
	slices.Sort(namespaces)
	if namespaces = slices.Compact(namespaces); slices.Contains(namespaces, f.Namespace) {
		return ""
	}
	return emptyNamespace(f.Namespace, namespaces)
}

// emptyNamespace says that a namespace has no RayCluster, and which have some.
func emptyNamespace(namespace string, others []string) string {
	const most = 5
	text := "there is no RayCluster in namespace " + namespace
	if len(others) == 0 {
		return text + ", and in no other"
	}
	text += "; there are RayClusters in " + strings.Join(others[:min(len(others), most)], ", ")
	if more := len(others) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if near := fieldpath.Nearest(namespace, others); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}
