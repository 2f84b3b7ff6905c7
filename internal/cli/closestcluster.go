package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// suggestTimeout limits how long an error waits for a suggestion.
const suggestTimeout = 2 * time.Second

// suggestCluster makes a command whose RayCluster does not exist suggest the closest one. The command must have its
// RunE.
func (f *ServerFlags) suggestCluster(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var problem *apiv1.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusNotFound || len(args) == 0 {
			return err
		}
		if near := f.closestCluster(cmd.Context(), args[0]); near != "" {
			return fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return err
	}
}

// closestCluster returns the RayCluster whose name is closest to a misspelled argument, written as the argument is, or
// nothing. Only RayClusters that the caller may see are listed, so nothing is revealed.
func (f *ServerFlags) closestCluster(ctx context.Context, argument string) string {
	ctx, cancel := context.WithTimeout(ctx, suggestTimeout)
	defer cancel()
	key, err := f.Cluster(argument)
	if err != nil {
		return ""
	}
	api, err := f.Client()
	if err != nil {
		return ""
	}
	clusters, err := api.Clusters(ctx, "")
	if err != nil {
		return ""
	}
	switch near := closestKey(key, clusters); {
	case near.Namespace == key.Namespace && !strings.Contains(argument, "/"):
		return near.Name
	case near.Name != "":
		return near.String()
	}
	return ""
}

// closestKey returns the RayCluster whose name is close to the key's in the same namespace, else the one of the same
// name in another namespace if there is only one. It returns nothing if the key itself is listed: then something else
// was not found.
func closestKey(key nodepool.ClusterKey, clusters []apiv1.ClusterSummary) nodepool.ClusterKey {
	var here, namespaces []string
	for _, c := range clusters {
		switch {
		case c.Namespace == key.Namespace && c.Name == key.Name:
			return nodepool.ClusterKey{}
		case c.Namespace == key.Namespace:
			here = append(here, c.Name)
		case c.Name == key.Name:
			namespaces = append(namespaces, c.Namespace)
		}
	}
	if near := fieldpath.Nearest(key.Name, here); near != "" {
		return nodepool.ClusterKey{Namespace: key.Namespace, Name: near}
	}
	if len(namespaces) == 1 {
		return nodepool.ClusterKey{Namespace: namespaces[0], Name: key.Name}
	}
	return nodepool.ClusterKey{}
}

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
