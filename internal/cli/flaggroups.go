package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupKey is the annotation of a flag with the title under which the help lists it.
const groupKey = "heliostat.dev/subject"

// ServerFlags is the group of the flags that select the server.
const ServerFlags = "Finding the server"

// ServeGroups are the groups of the flags of `serve` and of the sidecar.
var ServeGroups = []struct {
	Title string
	Flags []string
}{
	{
		"What it scales",
		[]string{
			"mode",
			"read-only",
			"protect-busy",
			"provisioning-requests",
			"warm-nodes",
			"namespaces",
			"cluster-name",
			"cluster-namespace",
			"waiting-cost",
			"prices",
		},
	},
	{
		"Limits and timeouts",
		[]string{"max-in-flight", "allocation-timeout", "drain-deadline", "consolidate-after"},
	},
	{
		"Nodes and their GPUs",
		[]string{
			"pools", "pool-label", "resource", "topology-label", "node-autoscaler", "cluster-autoscaler-namespace",
		},
	},
	{
		"Reading Ray",
		[]string{"gcs-address", "gcs-kubernetes-token-file", "poll-rest", "jobs-every"},
	},
	{"Kubernetes", []string{"kubeconfig", "kube-api-qps", "request-memory"}},
	{"Several replicas", []string{"leader-elect", "shards", "lease-name", "lease-namespace", "advertise-address"}},
	{
		"The REST API and the page",
		[]string{"listen", "insecure-no-auth", "token-audiences", "client-ca-file", "tls-cert-file", "tls-key-file",
			"requests-per-second"},
	},
	{
		"Probes, metrics and logs",
		[]string{"health-probe-bind-address", "metrics-bind-address", "pprof-bind-address", "log-format", "log-level"},
	},
}

// groupServeFlags annotates the flags of `serve` and of the sidecar with their groups.
func groupServeFlags(flags *pflag.FlagSet) {
	for _, s := range ServeGroups {
		for _, name := range s.Flags {
			if f := flags.Lookup(name); f != nil {
				SetGroup(f, s.Title)
			}
		}
	}
}

// SetGroup sets the title under which the help lists a flag.
func SetGroup(f *pflag.Flag, title string) {
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

// GroupsOf returns a command's flags by group: those without one, those that select the server, and then ServeGroups in
// their order.
func GroupsOf(flags *pflag.FlagSet) []flagGroup {
	sections := []flagGroup{{}, {Title: ServerFlags}}
	for _, s := range ServeGroups {
		sections = append(sections, flagGroup{Title: s.Title})
	}
	for i, s := range sections {
		sections[i].Flags = pflag.NewFlagSet(s.Title, pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if title := strings.Join(f.Annotations[groupKey], ""); title == s.Title {
				sections[i].Flags.AddFlag(f)
			}
		})
	}
	return slices.DeleteFunc(sections, func(s flagGroup) bool { return !s.Flags.HasAvailableFlags() })
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
