package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/httpapi/client"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// tellUnread says on standard error where Ray is not being read: an answer about a request or a demand is as old as the last reading.
func tellUnread(cmd *cobra.Command, api *client.Client, key nodepool.ClusterKey) {
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return // who may ask for the one need not see the other
	}
	if note := unread(cluster); note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: note: %s\n", cmd.Root().Name(), table.Printable(note))
	}
}

// unread is how Ray's own account of a RayCluster lacks, or nothing where it is read.
func unread(c apiv1.Cluster) string {
	why := ""
	if c.Error != "" {
		why = ": " + c.Error
	}
	switch {
	case c.DataAgeSeconds == nil:
		return fmt.Sprintf("Ray of %s/%s has not been read yet, so nothing is decided by what it says%s", c.Namespace, c.Name, why)
	case c.Error != "":
		return fmt.Sprintf("Ray of %s/%s was last read %s ago, and the answer is as old%s", c.Namespace, c.Name, ageText(c.DataAgeSeconds), why)
	}
	return ""
}
