package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/cli/table"
	"heliostat.dev/heliostat/internal/httpapi/client"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// tellUnread says on standard error where Ray is not being read: an answer about a request or a demand is as old as the
// last reading.
func tellUnread(cmd *cobra.Command, api *client.Client, key nodepool.ClusterKey) {
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return // who may ask for the one need not see the other
	}
	if note := printer.NotRead(cluster); note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: note: %s\n", cmd.Root().Name(), table.Printable(note))
	}
}
