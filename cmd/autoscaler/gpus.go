package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/gpuagent"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// gpuDriver is all that the commands need from an open driver.
type gpuDriver interface {
	gpuagent.Driver
	Close() error
}

// gpusCommand has the flags of `gpus`, and opens the driver.
type gpusCommand struct {
	open   func() (gpuDriver, error)
	output string
}

// newGPUsCommand returns the command; open opens the driver.
func newGPUsCommand(open func() (gpuDriver, error)) *cobra.Command {
	g := gpusCommand{open: open}
	cmd := &cobra.Command{
		Use:   "gpus",
		Short: "Shows this machine's GPUs as the NVIDIA driver reports them",
		Long: "Reads cards, memory, MIG instances and health from the NVIDIA driver, once. It does not\n" +
			"show XIDs: the driver reports them only when they happen, and `autoscaler agent` records them. The\n" +
			"exit status is 1 if there is no driver.",
		Example: "  autoscaler gpus\n  autoscaler gpus -o json",
		Args:    cli.Arguments(0, 0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.run(cmd.OutOrStdout()) },
	}
	cli.Output(cmd.Flags(), &g.output, cli.Outputs...)
	return cmd
}

func (g gpusCommand) run(out io.Writer) error {
	inventory, err := inventoryOf(g.open)
	if err != nil {
		return err
	}
	report := printer.GPUs{Inventory: inventory, Findings: []string{}}
	for _, card := range inventory.Cards {
		for _, fault := range sharing.CardFaults(card) {
			report.Findings = append(report.Findings, fmt.Sprintf("card %d: %s", card.Index, fault))
		}
	}
	if err := printer.Write(out, g.output, report, printer.WriteGPUs); err != nil {
		return fmt.Errorf("writing the cards: %w", err)
	}
	return nil
}

// inventoryOf reads the cards once and closes the driver.
func inventoryOf(open func() (gpuDriver, error)) (inventory gpuinfo.Inventory, err error) {
	driver, err := open()
	if err != nil {
		return inventory, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	return driver.Inventory()
}
