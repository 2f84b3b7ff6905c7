package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"heliostat.dev/heliostat/tools/licenses"
)

const (
	// license is the SPDX identifier of Heliostat's own license.
	license = "Apache-2.0"
	// termsFolder is the directory of the licenses in the image.
	termsFolder = "usr/share/licenses/heliostat/"
)

// terms are the licenses of the modules in an image.
type terms struct {
	own, others []byte
	// ids are the SPDX identifiers of each module, by "PATH VERSION".
	ids map[string][]string
}

// termsOf reads the licenses of all modules in the image for an architecture. It returns an error if one is not
// allowed.
func termsOf(ctx context.Context, source, arch string) (terms, error) {
	own, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return terms{}, fmt.Errorf("reading Heliostat's license: %w", err)
	}
	modules, err := licenses.Linked(ctx, licenses.OfImage(source, arch)...)
	if err != nil {
		return terms{}, err
	}
	checker, err := licenses.NewChecker()
	if err != nil {
		return terms{}, err
	}
	if err := checker.Check(modules); err != nil {
		return terms{}, err
	}
	t := terms{own: own, others: checker.Texts(modules), ids: map[string][]string{}}
	for _, m := range modules {
		t.ids[m.Path+" "+m.Version] = checker.IDs(m)
	}
	return t, nil
}

// entries returns the files with the licenses.
func (t terms) entries() []entry {
	return []entry{
		{name: "usr/share/", dir: true, mode: 0o755},
		{name: "usr/share/licenses/", dir: true, mode: 0o755},
		{name: termsFolder, dir: true, mode: 0o755},
		{name: termsFolder + "LICENSE", mode: 0o644, data: t.own},
		{name: termsFolder + "THIRD-PARTY", mode: 0o644, data: t.others},
	}
}

// of returns the licenses of a module in the form of a bill of materials. All of them apply, each to a part of the
// module.
func (t terms) of(module, version string) (*cdx.Licenses, error) {
	ids := t.ids[module+" "+version]
	switch len(ids) {
	case 0:
		return nil, fmt.Errorf("a program is linked from %s %s, of which no license was read", module, version)
	case 1:
		return &cdx.Licenses{{License: &cdx.License{ID: ids[0]}}}, nil
	}
	return &cdx.Licenses{{Expression: strings.Join(ids, " AND ")}}, nil
}
