package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
)

var updateHowto = flag.Bool("update-howto", false, "write what the commands of docs/howto print into the pages")

// A page's ```yaml block whose first line is "# NAME" is the file NAME, and so is a ```json block right after "`NAME`:",
// because JSON has no comments. The test runs the lines "$
// autoscaler …" of a ```console block in a directory with these files. The following lines are the expected output,
// with "exit N" at the end if N is not 0.
var (
	howtoBlock = regexp.MustCompile("(?ms)(?:`([^`\\s]+)`:\n\n)?^```(yaml|json|console)\n(.*?)^```$")
	howtoFile  = regexp.MustCompile(`^# (\S+)\n`)
)

func TestCommandsOfTheHowtoPagesPrintWhatThePagesShow(t *testing.T) {
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			path, err := filepath.Abs(page)
			must(t, err)
			runHowto(t, path)
		})
	}
}

func runHowto(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	must(t, err)
	t.Chdir(t.TempDir())
	commands := 0
	got := howtoBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		parts := howtoBlock.FindStringSubmatch(block)
		named, kind, body := parts[1], parts[2], parts[3]
		if kind != "console" {
			if name := howtoFile.FindStringSubmatch(body); name != nil {
				named = name[1]
			}
			if named != "" {
				writeHowtoFile(t, named, kind, body)
			}
			return block
		}
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(body) {
			if asked, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				b.WriteString(line + runHowtoLine(t, strings.TrimSpace(asked)))
			}
		}
		return b.String() + "```"
	})
	if commands == 0 {
		t.Error("the page runs nothing")
	}
	if *updateHowto {
		must(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	if diff := gocmp.Diff(string(text), got); diff != "" {
		t.Errorf("go test ./cmd/autoscaler -run Howto -update-howto renews what is printed (-page +printed):\n%s", diff)
	}
}

func writeHowtoFile(t *testing.T, name, kind, text string) {
	if kind == "json" && !json.Valid([]byte(text)) {
		t.Errorf("the block of %s is not JSON", name)
	}
	must(t, os.WriteFile(filepath.Base(name), []byte(text), 0o644))
}

func runHowtoLine(t *testing.T, line string) string {
	argv := strings.Fields(line)
	if argv[0] != "autoscaler" || strings.ContainsAny(line, `'"|>\`) {
		t.Fatalf("%s: only plain calls of autoscaler are run; others belong into a block ```sh", line)
	}
	code, out, errOut := command(t, "", argv...)
	printed := cmp.Or(out, errOut)
	if code != cli.ExitOK {
		printed += fmt.Sprintf("exit %d\n", code)
	}
	return printed
}

func TestTheExampleOfAPlanFromARayClusterIsWhatIsPrinted(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/plan.md")
	must(t, err)
	_, example, found := strings.Cut(string(page), "```json\n")
	snapshot, rest, closed := strings.Cut(example, "```\n```text\n")
	want, _, ended := strings.Cut(rest, "```\n")
	if !found || !closed || !ended {
		t.Fatal("the page has no example")
	}
	code, out, errOut := command(t, snapshot, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if diff := gocmp.Diff(want, out); code != cli.ExitOK || diff != "" {
		t.Errorf("exit %d %s (-page +printed):\n%s", code, errOut, diff)
	}
}
