package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	linkTo     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	rowID      = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// slugs returns a page's anchors: those of its rows, and those of its headings, as GitHub makes them: lower case, a hyphen
// for each space, no punctuation.
func slugs(page string) map[string]bool {
	found := map[string]bool{}
	for _, title := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		plain := strings.ToLower(linkText.ReplaceAllString(title[1], "$1"))
		found[strings.ReplaceAll(notInSlugs.ReplaceAllString(plain, ""), " ", "-")] = true
	}
	for _, row := range rowID.FindAllStringSubmatch(page, -1) {
		found[row[1]] = true
	}
	return found
}

func TestLinksResolveAndEveryPageIsLinked(t *testing.T) {
	all := append(pages(t), "CHANGELOG.md", "deploy/chart/README.md")
	linked := map[string]bool{"README.md": true, "CHANGELOG.md": true}
	for _, page := range all {
		for _, link := range linkTo.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[1])
				continue
			}
			if anchor != "" && !slugs(read(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, link[1])
			}
			if filepath.Base(page) == "README.md" {
				linked[target] = true
			}
		}
	}
	for _, page := range all {
		if !linked[page] {
			t.Errorf("no README.md links to %s", page)
		}
	}
}

// pages returns README.md and all pages below docs.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if page := strings.TrimPrefix(path, root+"/"); err == nil && strings.HasSuffix(page, ".md") {
			found = append(found, page)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
