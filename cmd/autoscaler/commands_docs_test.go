package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
)

var updateCommands = flag.Bool("update-commands", false, "rewrite docs/reference/commands.md")

const commandsPage = "../../docs/reference/commands.md"

const commandsHead = `# Commands

` + "`autoscaler COMMAND --help`" + ` says the same. With the program in your PATH as ` + "`kubectl-heliostat`" + `, run it as
` + "`kubectl heliostat`" + `. Under the name ` + "`ray`" + `, it replaces Ray's own autoscaler in a head pod ([Run
Heliostat](../running.md#sidecar)).

| exit status | meaning |
|---|---|
| 0 | the command succeeded |
| 1 | it failed, or ` + "`doctor`" + ` found an error |
| 2 | the arguments, a file or the body of a request are invalid; the message on standard error says what, and what is valid |

A flag with an empty value, such as ` + "`--policy ''`" + `, is an error, except for flags that find the server and for the
commands with ` + "`--config`" + `.

` + "`-o`" + ` is ` + "`table`, `wide`, `json` or `yaml`" + `. A table has at most 100 columns, and may cut names to fit. ` + "`wide`" + ` has all
columns and full names. Tables have colours on a terminal, unless ` + "`NO_COLOR`" + ` is set. Tables show how long ago something
happened; the other formats show when.

`

const connectDocs = `## Finding the server

%s call a Heliostat server, in one of two ways:

- ` + "`--server`" + ` or the variable ` + "`" + cli.ServerVariable + "`" + ` is its address. ` + "`--token-file`" + ` names a file with your bearer token.
  The command reads the file for each call, and never sends the token to another machine without TLS. You can set
  ` + "`--client-certificate` and `--client-key`" + ` in place of a token.
- Without an address, the command calls the API server of your kubeconfig, which passes calls on to the Service of the
  Helm chart (` + "`services/proxy`" + `; ` + "`--service`" + ` names another). The API server does not pass on the header
  ` + "`Authorization`" + `, so the command sends the token for Heliostat as ` + "`X-Heliostat-Authorization`" + `. The right to use the
  proxy alone gives no access: Heliostat asks Kubernetes whose token it is. The command never sends the credentials of
  the kubeconfig to Heliostat. If its user is a ServiceAccount that may create tokens for itself, the command creates a
  short-lived token. Otherwise, set ` + "`--token-file`" + `, for example to a file with the output of
  ` + "`kubectl create token NAME --audience heliostat`" + `.
`

// TestTheReferenceOfCommandsIsWhatTheySay checks that the page matches the text that the commands generate.
func TestTheReferenceOfCommandsIsWhatTheySay(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	var page strings.Builder
	page.WriteString(commandsHead + "| command | what it does |\n|---|---|\n")
	// without cobra's own command
	all := slices.DeleteFunc(newRoot("autoscaler").Commands(), func(c *cobra.Command) bool { return c.Name() == "help" })
	slices.SortFunc(all, func(a, b *cobra.Command) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, c := range all {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", c.Name(), c.Name(), c.Short)
	}
	fmt.Fprintf(&page, "\n"+connectDocs, calling(all))
	shared := sharedFlags()
	writeFlags(&page, shared, nil)
	for _, c := range all {
		writeCommand(&page, c, shared)
	}
	if *updateCommands {
		if err := os.WriteFile(commandsPage, []byte(page.String()), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(written), page.String()); diff != "" {
		t.Errorf("go test ./cmd/autoscaler -run TestTheReferenceOfCommands -update-commands writes it (-page +commands):\n%s", diff)
	}
}

func TestNoHelpTellsADefaultThatIsNone(t *testing.T) {
	for _, c := range commands() {
		_, out, _ := command(t, "", "autoscaler", c.Name(), "--help")
		if !strings.Contains(out, "Examples:\n") || strings.Contains(out, "(default )") || strings.Contains(out, "(default [])") {
			t.Errorf("%s --help:\n%s", c.Name(), out)
		}
	}
}

// calling returns the names of the commands that call a server.
func calling(all []*cobra.Command) string {
	var names []string
	for _, c := range all {
		if c.Flags().Lookup("service") != nil {
			names = append(names, "`"+c.Name()+"`")
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// sharedFlags returns the flags of serverFlags.
func sharedFlags() *pflag.FlagSet {
	c := &cobra.Command{}
	(&connect.ServerFlags{}).AddTo(c)
	return c.Flags()
}

func writeCommand(page *strings.Builder, c *cobra.Command, shared *pflag.FlagSet) {
	fmt.Fprintf(page, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.Name(), c.Short, c.UseLine())
	if long := strings.TrimSpace(strings.TrimSuffix(c.Long, connect.Help)); long != "" {
		fmt.Fprintf(page, "\n%s\n", long)
	}
	if c.Example != "" {
		fmt.Fprintf(page, "\n```sh\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
	}
	connects := c.Flags().Lookup("service") != nil
	if connects {
		page.WriteString("\nFlags, beside those of [finding the server](#finding-the-server):\n")
	} else {
		shared = nil
	}
	writeFlags(page, c.Flags(), shared)
}

// writeFlags writes a table of the flags that are not in without, for each subject.
func writeFlags(page *strings.Builder, flags, without *pflag.FlagSet) {
	for _, s := range cli.GroupsOf(flags) {
		title := ""
		if s.Title != "" && s.Title != cli.ServerFlags {
			title = "\n### " + s.Title + "\n"
		}
		writeTable(page, title, s.Flags, without)
	}
}

func writeTable(page *strings.Builder, title string, flags, without *pflag.FlagSet) {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden || without != nil && without.Lookup(f.Name) != nil {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", name, kind, asCode(f.DefValue), strings.ReplaceAll(strings.ReplaceAll(usage, "|", `\|`), "\n", " "))
	})
	if rows.Len() > 0 {
		page.WriteString(title + "\n| flag | value | default | what it is |\n|---|---|---|---|\n" + rows.String())
	}
}

func asCode(value string) string {
	if value == "" || value == "false" || value == "[]" {
		return ""
	}
	return "`" + value + "`"
}
