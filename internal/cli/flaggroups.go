package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation of a flag with the title under which the help lists it.
const groupKey = "heliostat.dev/subject"

// The titles of groups. ServerFlags select the server; the others are of `serve` and of the sidecar.
const (
	findFlags       = "Finding the server"
	ScalingFlags    = "What it scales"
	LimitFlags      = "Limits and timeouts"
	NodeFlags       = "Nodes and their GPUs"
	RayFlags        = "Reading Ray"
	KubernetesFlags = "Kubernetes"
	ReplicaFlags    = "Several replicas"
	RESTFlags       = "The REST API and the page"
	TelemetryFlags  = "Probes, metrics and logs"
)

// groups are the titles in the order of the help.
var groups = []string{"", findFlags, ScalingFlags, LimitFlags, NodeFlags, RayFlags, KubernetesFlags, ReplicaFlags,
	RESTFlags, TelemetryFlags}

// Group puts the flags that have no group yet into one.
func Group(flags *pflag.FlagSet, title string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[groupKey] == nil {
			setGroup(f, title)
		}
	})
}

// setGroup sets the title under which the help lists a flag.
func setGroup(f *pflag.Flag, title string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[groupKey] = []string{title}
}

// flagGroup is the visible flags of one group. The first group of a command has no title.
type flagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// GroupsOf returns a command's flags by group.
func GroupsOf(flags *pflag.FlagSet) (found []flagGroup) {
	for _, title := range groups {
		group := flagGroup{title, pflag.NewFlagSet(title, pflag.ContinueOnError)}
		flags.VisitAll(func(f *pflag.Flag) {
			if strings.Join(f.Annotations[groupKey], "") == title {
				group.Flags.AddFlag(f)
			}
		})
		if group.Flags.HasAvailableFlags() {
			found = append(found, group)
		}
	}
	return found
}

// WriteUsage writes the usage of a command as cobra does, but groups the flags.
func WriteUsage(c *cobra.Command) error {
	var p strings.Builder
	p.WriteString("Usage:")
	if c.Runnable() {
		fmt.Fprintf(&p, "\n  %s", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&p, "\n  %s [command]\n\nAvailable Commands:", c.CommandPath())
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&p, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	if c.HasExample() {
		p.WriteString("\n\nExamples:\n" + strings.ReplaceAll(c.Example, "autoscaler ", c.Root().CommandPath()+" "))
	}
	for _, s := range GroupsOf(c.LocalFlags()) {
		usages := strings.ReplaceAll(s.Flags.FlagUsages(), " (default [])", "") // an empty list is not worth showing
		fmt.Fprintf(&p, "\n\n%s:\n%s", cmp.Or(s.Title, "Flags"), strings.TrimRight(usages, " \n"))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&p, "\n\nUse \"%s [command] --help\" for more information about a command.", c.CommandPath())
	}
	_, err := fmt.Fprintln(c.OutOrStderr(), p.String())
	return err
}

// CheckFlagsTogether checks, after the file and the environment have set flags, that none was set to nothing, and that
// flags that exclude or require each other were not or were set together. Its error is bad input.
func CheckFlagsTogether(c *cobra.Command) {
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if before != nil {
			if err := before(c, args); err != nil {
				return err
			}
		}
		if err := errors.Join(notEmpty(c.Flags()), c.ValidateFlagGroups()); err != nil {
			return BadInput(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}

// notEmpty returns an error about string flags that were set to nothing, often by an unset variable of a shell.
// The flags that find the server may be empty, as those of kubectl may, and so may those that a file or the environment
// can set: a manifest switches them off that way.
func notEmpty(flags *pflag.FlagSet) error {
	if flags.Lookup(ConfigFlag) != nil {
		return nil
	}
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" &&
			strings.Join(f.Annotations[groupKey], "") != findFlags {
			errs = append(errs, fmt.Errorf("--%s %q: want a value, or the flag left out", f.Name, ""))
		}
	})
	return errors.Join(errs...)
}
