package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const factsPage = "docs/reference/facts.md"

var (
	page     = regexp.MustCompile(`docs/[\w/-]+\.md`)
	citation = regexp.MustCompile(regexp.QuoteMeta(factsPage) + `#([\w-]+)`)
	// elsewhere is a page or a folder without its path, which the reader of a comment cannot find.
	elsewhere = regexp.MustCompile(`(?://|#).*(?:\(|\s)((?:design|reference|fixtures|INDEX)[\w/.-]*\.md|fixtures/\w+)`)
)

// sources calls visit for each file of code, build or interface: everything except pages, recorded data and hidden
// files.
func sources(t *testing.T, visit func(path, text string)) {
	t.Helper()
	kinds := []string{".go", ".proto", ".yaml", ".py", ".sh", "Makefile"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "bin" || name == "docs" || len(name) > 2 && name[0] == '.'):
			return filepath.SkipDir
		case entry.Type().IsRegular() && slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(name, kind) }):
			path, _ = filepath.Rel(root, path)
			visit(path, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors returns those of the facts. Each is the name of its fact as a heading would make it.
func anchors(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, fact := range regexp.MustCompile(`<a id="([^"]+)"></a>\*\*([\w -]+)\.\*\*`).FindAllStringSubmatch(read(t, factsPage), -1) {
		found = append(found, fact[1])
		if want := strings.ReplaceAll(strings.ToLower(fact[2]), " ", "-"); fact[1] != want {
			t.Errorf("the fact %q has the anchor %s, want %s", fact[2], fact[1], want)
		}
	}
	if facts := strings.Count(read(t, factsPage), "<a id="); facts != len(found) || facts < 50 {
		t.Errorf("%d of %d facts were read", len(found), facts)
	}
	return found
}

func TestFactsAndCitationsMatch(t *testing.T) {
	cited := map[string]bool{}
	known := anchors(t)
	sources(t, func(path, text string) {
		for _, match := range citation.FindAllStringSubmatch(text, -1) {
			cited[match[1]] = true
			if !slices.Contains(known, match[1]) {
				t.Errorf("%s cites %s#%s, which is not there", path, factsPage, match[1])
			}
		}
	})
	for i, anchor := range known {
		if slices.Contains(known[:i], anchor) {
			t.Errorf("two facts have the anchor #%s", anchor)
		}
		if !cited[anchor] {
			t.Errorf("no code cites #%s", anchor)
		}
	}
}

func TestPagesNamedInCommentsExist(t *testing.T) {
	found := 0
	sources(t, func(path, text string) {
		for _, name := range page.FindAllString(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
		for _, match := range elsewhere.FindAllStringSubmatch(text, -1) {
			t.Errorf("%s names %s without the way to it", path, match[1])
		}
	})
	if found < 20 {
		t.Errorf("only %d names of pages were found", found)
	}
}
