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
	// license is Heliostat's own, as SPDX names it.
	license = "Apache-2.0"
	// termsFolder is where the image has its licenses.
	termsFolder = "usr/share/licenses/heliostat/"
)

// terms are the licenses of what an image carries.
type terms struct {
	own, others []byte
	// ids has the SPDX identifiers of each module, by "PATH VERSION".
	ids map[string][]string
}

// termsOf reads the licenses of what the image for an architecture is made of. One that is not allowed is an error.
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

// entries are the files of the licenses.
func (t terms) entries() []entry {
	return []entry{
		{name: "usr/share/", dir: true, mode: 0o755},
		{name: "usr/share/licenses/", dir: true, mode: 0o755},
		{name: termsFolder, dir: true, mode: 0o755},
		{name: termsFolder + "LICENSE", mode: 0o644, data: t.own},
		{name: termsFolder + "THIRD-PARTY", mode: 0o644, data: t.others},
	}
}

// of returns the licenses of a module as a bill of materials names them: all of them hold, each for a part.
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
