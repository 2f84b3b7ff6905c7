// Command style checks the text of the repository against the rules of the style guide that a program can check: the
// width of Go source lines, and phrases that have a plain English replacement. It prints one line for each finding and
// fails if there are any. It must not rewrite files.
//
//	style DIRECTORY
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: style DIRECTORY")
		os.Exit(2)
	}
	findings, err := check(os.DirFS(os.Args[1]))
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%d findings of style", len(findings))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns the findings in all files of a tree.
func check(tree fs.FS) (findings []string, err error) {
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "testdata" || len(name) > 1 && strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
			return nil
		}
		rules := rulesFor(path)
		if len(rules) == 0 {
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		findings = append(findings, lint(path, string(text), rules)...)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("checking style: %w", err)
	}
	return findings, err
}

// rulesFor returns the rules for a file. Product code has all rules. Markdown and the comments of tests have only the
// phrase rule.
func rulesFor(path string) []rule {
	switch {
	case filepath.Base(path) == "CHANGELOG.md":
		return nil // history keeps its original words
	case strings.HasSuffix(path, ".md"):
		return []rule{phrases}
	case strings.HasSuffix(path, "_test.go"):
		return []rule{comments}
	case strings.HasSuffix(path, ".go"):
		return []rule{width, comments}
	}
	return nil
}

// lint applies rules to each line of a file, unless it is generated.
func lint(path, text string, rules []rule) (findings []string) {
	if strings.HasSuffix(path, ".go") && isGenerated(text) {
		return nil
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, rule := range rules {
			if problem := rule(strings.TrimRight(line, "\r\n")); problem != "" {
				findings = append(findings, fmt.Sprintf("%s:%d: %s", path, number, problem))
			}
		}
	}
	return findings
}

// isGenerated reports whether a Go file has the comment of generated code.
func isGenerated(text string) bool {
	before, _, _ := strings.Cut(text, "\npackage ")
	return slices.ContainsFunc(strings.Split(before, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "// Code generated ") && strings.HasSuffix(line, " DO NOT EDIT.")
	})
}
