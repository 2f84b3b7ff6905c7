package main

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/cmd/autoscaler/engine"
)

var updateCommands = flag.Bool("update-commands", false, "rewrite the generated parts of docs/reference/commands.md")

const commandsPage = "../../docs/reference/commands.md"

// generated matches a part of the page that is generated, with its name.
var generated = regexp.MustCompile(`(?s)<!-- (\w+): generated -->\n(.*?)<!-- end -->`)

// TestTheReferenceOfCommandsIsWhatTheySay checks that the generated parts of the page match the commands.
func TestTheReferenceOfCommandsIsWhatTheySay(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	page, err := os.ReadFile(commandsPage)
	must(t, err)
	parts := map[string]string{"commands": tableOfCommands(), "flags": flagsOfServe()}
	got := generated.ReplaceAllStringFunc(string(page), func(part string) string {
		name := generated.FindStringSubmatch(part)[1]
		text := parts[name]
		delete(parts, name)
		return "<!-- " + name + ": generated -->\n\n" + text + "\n<!-- end -->"
	})
	if len(parts) > 0 {
		t.Errorf("the page lacks %d generated parts", len(parts))
	}
	if *updateCommands {
		if err := os.WriteFile(commandsPage, []byte(got), 0o644); err != nil { //nolint:gosec // a page for everybody
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(string(page), got); diff != "" {
		t.Errorf("go test ./cmd/autoscaler -run TestTheReferenceOfCommands -update-commands writes it (-page +commands):\n%s", diff)
	}
}

// documented returns the commands that people use, without cobra's own and without those that were removed.
func documented() []*cobra.Command {
	all := slices.DeleteFunc(newRoot("autoscaler").Commands(), func(c *cobra.Command) bool { return c.Name() == "help" || c.Hidden })
	slices.SortFunc(all, func(a, b *cobra.Command) int { return cmp.Compare(a.Name(), b.Name()) })
	return all
}

func tableOfCommands() string {
	var table strings.Builder
	table.WriteString("| command | what it does |\n|---|---|\n")
	for _, c := range documented() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", c.Name(), c.Short)
	}
	return table.String()
}

// flagsOfServe returns a table of the flags, and says which of them the sidecar lacks.
func flagsOfServe() string {
	var page strings.Builder
	sidecar := engine.Sidecar().Flags()
	page.WriteString("| flag | default | what it is |\n|---|---|---|\n")
	engine.Serve().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			_, usage := pflag.UnquoteUsage(f)
			if sidecar.Lookup(f.Name) == nil {
				usage += " *(only serve)*"
			}
			fmt.Fprintf(&page, "| `--%s` | %s | %s |\n", f.Name, asCode(f.DefValue), strings.NewReplacer("|", `\|`, "\n", " ").Replace(usage))
		}
	})
	return page.String()
}

func asCode(value string) string {
	if value == "" || value == "false" || value == "[]" {
		return ""
	}
	return "`" + value + "`"
}

var twoDefaults = regexp.MustCompile(`\(default[^()]*\)\s*\(default[^()]*\)`)

func TestNoHelpTellsADefaultThatIsNoneOrTwice(t *testing.T) {
	for _, c := range commands() {
		_, out, _ := command(t, "", "autoscaler", c.Name(), "--help")
		if !strings.Contains(out, "Examples:\n") || strings.Contains(out, "(default )") || strings.Contains(out, "(default [])") {
			t.Errorf("%s --help:\n%s", c.Name(), out)
		}
		if twice := twoDefaults.FindString(out); twice != "" {
			t.Errorf("%s --help tells a default twice: %s", c.Name(), twice)
		}
	}
}

// In blocks, a call of the program is at the beginning of a line or after a pipe. In other text, it is within `code`.
var (
	fenced      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	typedFenced = regexp.MustCompile(`(?m)(?:^\s*(?:\$ )?|\| |bin/)autoscaler ([a-z-]+)((?: [^\n|#]*)?)`)
	typedInline = regexp.MustCompile("`autoscaler ([a-z-]+)((?: [^`|]*)?)`")
	typedFlag   = regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`)
)

// calls returns the calls of the program on a page, each with its command and arguments.
func calls(page string) [][]string {
	var found [][]string
	for _, block := range fenced.FindAllString(page, -1) {
		found = append(found, typedFenced.FindAllStringSubmatch(block, -1)...)
	}
	return append(found, typedInline.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1)...)
}

func TestPagesUseExistingCommandsAndFlags(t *testing.T) {
	flags := map[string][]string{}
	for _, c := range documented() {
		flags[c.Name()] = []string{"--help"}
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[c.Name()] = append(flags[c.Name()], "--"+f.Name, "-"+f.Shorthand) })
	}
	found := 0
	checkText := func(path, page string) {
		for _, call := range calls(page) {
			found++
			have, is := flags[call[1]]
			if !is {
				t.Errorf("%s: autoscaler has no command %s", path, call[1])
				continue
			}
			for _, typed := range typedFlag.FindAllStringSubmatch(call[2], -1) {
				if !slices.Contains(have, typed[1]) {
					t.Errorf("%s: autoscaler %s has no flag %s", path, call[1], typed[1])
				}
			}
		}
	}
	check := func(path string) {
		page, err := os.ReadFile(path)
		must(t, err)
		checkText(path, string(page))
	}
	for _, c := range documented() {
		checkText("help of "+c.Name(), "```\n"+c.Example+"\n```")
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		check("../../" + name)
	}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			check(path)
		}
		return err
	})
	must(t, err)
	if found < 40 {
		t.Errorf("only %d calls were found", found)
	}
}
