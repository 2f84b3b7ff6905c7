package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// meantTimeout bounds what a refusal waits for names that would be right.
const meantTimeout = 2 * time.Second

// sayMeant lets a command that was given the name of no RayCluster say which one was probably meant. The command has its RunE by then.
func (f *serverFlags) sayMeant(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var problem *apiv1.Problem
		if !errors.As(err, &problem) || problem.Status != http.StatusNotFound || len(args) == 0 {
			return err
		}
		if near := f.meantCluster(cmd.Context(), args[0]); near != "" {
			return fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return err
	}
}

// meantCluster is the RayCluster that a misspelt one is likely to mean, in the words in which it was written, or nothing. Only those that the caller may see
// are listed, so nothing is revealed.
func (f *serverFlags) meantCluster(ctx context.Context, argument string) string {
	ctx, cancel := context.WithTimeout(ctx, meantTimeout)
	defer cancel()
	key, err := f.cluster(argument)
	if err != nil {
		return ""
	}
	api, err := f.client()
	if err != nil {
		return ""
	}
	clusters, err := api.Clusters(ctx, "")
	if err != nil {
		return ""
	}
	switch near := nearCluster(key, clusters); {
	case near.Namespace == key.Namespace && !strings.Contains(argument, "/"):
		return near.Name
	case near.Name != "":
		return near.String()
	}
	return ""
}

// nearCluster is the RayCluster whose name is near to a key's in its namespace, else one of the same name in
// another, if there is only one. It is nothing where the key itself is known: then something else was not found.
func nearCluster(key nodepool.ClusterKey, clusters []apiv1.ClusterSummary) nodepool.ClusterKey {
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
	if near := typo.Nearest(key.Name, here); near != "" {
		return nodepool.ClusterKey{Namespace: key.Namespace, Name: near}
	}
	if len(namespaces) == 1 {
		return nodepool.ClusterKey{Namespace: namespaces[0], Name: key.Name}
	}
	return nodepool.ClusterKey{}
}
