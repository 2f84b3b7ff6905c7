package licenses

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the SPDX identifiers of the licenses that modules linked into Heliostat may have. All of them let a
// program with the Apache license contain the module. They require only that its notices are distributed with the
// program, which the image does (Texts).
//
// MPL-2.0 is not allowed but for the modules of excepted: users who distribute the program would have to offer the
// source of the module's files too. GPL, LGPL and AGPL would apply to Heliostat itself, because Go links statically. A
// new license needs a decision, and then a line with the reason.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// excepted are the modules that may have one more license.
//
// KubeRay's validation, which the doctor calls, links golang-lru. The module is unmodified and public at the version
// that the texts of the image name, which is how MPL-2.0 (section 3.2) wants its source offered.
var excepted = map[string]string{"github.com/hashicorp/golang-lru/v2": "MPL-2.0"}

// policyFile is the path of this file, for messages.
const policyFile = "tools/licenses/policy.go"

// Checker detects licenses.
type Checker struct {
	classifier *classifier.Classifier
	// known caches the results by text, because most modules have one of a few texts.
	known map[[sha256.Size]byte]recognized
}

// recognized is the result for one text.
type recognized struct {
	ids []string // SPDX identifiers, sorted
	// mostly means that at least half of the text's lines belong to these licenses.
	mostly bool
}

// NewChecker loads the texts of the known licenses, which takes less than a second.
func NewChecker() (*Checker, error) {
	c, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("loading the texts of licenses: %w", err)
	}
	return &Checker{classifier: c, known: map[[sha256.Size]byte]recognized{}}, nil
}

// recognize detects the licenses in a text. A header that names a license counts as that license.
func (c *Checker) recognize(text []byte) recognized {
	sum := sha256.Sum256(text)
	if r, known := c.known[sum]; known {
		return r
	}
	result := c.classifier.Match(text)
	ids, lines := map[string]bool{}, map[int]bool{}
	for _, m := range result.Matches {
		if m.MatchType != "License" && m.MatchType != "Header" {
			continue // a copyright line
		}
		ids[m.Name] = true
		for line := m.StartLine; line <= m.EndLine; line++ {
			lines[line] = true
		}
	}
	r := recognized{ids: slices.Sorted(maps.Keys(ids)), mostly: 2*len(lines) >= result.TotalInputLines}
	c.known[sum] = r
	return r
}

// IDs returns the SPDX identifiers of all licenses of a module, sorted. Each license applies to a part of the module.
func (c *Checker) IDs(m Module) []string {
	var ids []string
	for _, f := range m.Files {
		if !f.Notice {
			ids = append(ids, c.recognize(f.Text).ids...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Check returns an error that names each module without a license, or with a license that is not allowed.
func (c *Checker) Check(modules []Module) error {
	var errs []error
	for _, m := range modules {
		errs = append(errs, c.check(m))
	}
	return errors.Join(errs...)
}

func (c *Checker) check(m Module) error {
	var errs []error
	licensed := false
	for _, f := range m.Files {
		if f.Notice {
			continue
		}
		licensed = true
		if err := c.checkText(f.Text, excepted[m.Path]); err != nil {
			errs = append(errs,
				fmt.Errorf("module %s %s: %s: %w", m.Path, m.Version, filepath.Join(m.Dir, f.Name), err))
		}
	}
	if !licensed {
		errs = append(errs, fmt.Errorf(
			"module %s %s: no file LICENSE or COPYING in %s, so nobody may pass it on: replace the module",
			m.Path, m.Version, m.Dir))
	}
	return errors.Join(errs...)
}

func (c *Checker) checkText(text []byte, alsoAllowed string) error {
	r := c.recognize(text)
	for _, id := range r.ids {
		if id != alsoAllowed && !slices.Contains(allowed, id) {
			return fmt.Errorf(
				"%s is not allowed, want %s: replace the module, or add the license in %s with the reason", id,
				strings.Join(allowed, ", "), policyFile)
		}
	}
	switch {
	case len(r.ids) == 0:
		return fmt.Errorf("no known license is in it, want %s: replace the module", strings.Join(allowed, ", "))
	case !r.mostly:
		return fmt.Errorf("less than half of it is %s, and the rest is not known: read it, and replace the module",
			strings.Join(r.ids, ", "))
	}
	return nil
}
