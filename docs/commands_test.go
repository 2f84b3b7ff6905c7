package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commandFlags returns the flags of each command on docs/reference/commands.md. A test of cmd/autoscaler compares that
// page with the program.
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	flagRow := regexp.MustCompile("(?m)^\\| (?:`(-[a-zA-Z])`, )?`(--[a-z-]+)` \\|")
	found, shared := map[string][]string{}, []string(nil)
	for section := range strings.SplitSeq(read(t, "docs/reference/commands.md"), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		var flags []string
		for _, row := range flagRow.FindAllStringSubmatch(section, -1) {
			flags = append(flags, row[1], row[2])
		}
		if title == "Finding the server" {
			shared = flags
		} else if strings.Contains(section, "#finding-the-server") {
			flags = append(flags, shared...)
		}
		found[title] = append(flags, "--help")
	}
	return found
}

// pages returns README.md and all pages below docs, except the reference of commands.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if page := strings.TrimPrefix(path, root+"/"); err == nil && strings.HasSuffix(page, ".md") && page != "docs/reference/commands.md" {
			found = append(found, page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// In blocks, a call of the program is at the beginning of a line or after a pipe. In other text, it is within `code`.
var (
	fenced      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	typedFenced = regexp.MustCompile(`(?m)(?:^\s*(?:\$ )?|\| |bin/)autoscaler ([a-z]+)((?: [^\n|#]*)?)`)
	typedInline = regexp.MustCompile("`autoscaler ([a-z]+)((?: [^`|]*)?)`")
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
	flags, found := commandFlags(t), 0
	for _, page := range pages(t) {
		for _, call := range calls(read(t, page)) {
			found++
			have, is := flags[call[1]]
			if !is {
				t.Errorf("%s: autoscaler has no command %s", page, call[1])
				continue
			}
			for _, flag := range regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`).FindAllStringSubmatch(call[2], -1) {
				if !slices.Contains(have, flag[1]) {
					t.Errorf("%s: autoscaler %s has no flag %s", page, call[1], flag[1])
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d calls were found", found)
	}
}
