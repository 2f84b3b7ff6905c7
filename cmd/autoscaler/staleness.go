package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// noteStaleness writes a note to standard error if Ray's state cannot be read: an answer about a request or about
// demand is as old as the last reading.
func noteStaleness(cmd *cobra.Command, api *apiv1.Client, key nodepool.ClusterKey) {
	cluster, err := api.Status(cmd.Context(), key)
	if err != nil {
		return // a user with the right to request may lack the right to read the status
	}
	writeNote(cmd, printer.NotRead(cluster))
}

// writeNote writes a note, if there is one, to standard error: programs read standard output.
func writeNote(cmd *cobra.Command, note string) {
	if note != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: note: %s\n", cmd.Root().Name(), printer.Printable(note))
	}
}
