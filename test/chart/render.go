package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// Values are the values that a user sets. They override the chart's own.
type Values = map[string]any

// Release describes the release for which a chart is rendered.
type Release struct {
	Name, Namespace string
	// Upgrade means that there is an earlier revision.
	Upgrade bool
}

// Manifest is one document that a template renders.
type Manifest struct {
	// Template is the template's name without a directory, for example rbac.yaml.
	Template string
	// Text is the YAML, including comments.
	Text string
}

// Load reads the chart in a directory.
func Load(dir string) (*helm.Chart, error) {
	read, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("loading the chart %s: %w", dir, err)
	}
	return read, nil
}

// kubernetes is the Kubernetes version for which manifests are rendered. The chart renders the same for every version.
const kubernetes = "v1.35.0"

// Render renders a chart as `helm template` does, and validates the values against their schema. It sorts the manifests
// by the templates' names and keeps their order within a template. Helm itself creates them in the order of their
// kinds.
func Render(c *helm.Chart, release Release, values Values) (manifests []Manifest, notes string, err error) {
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, "", fmt.Errorf("reading Kubernetes' version: %w", err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	options := chartutil.ReleaseOptions{
		Name:      release.Name,
		Namespace: release.Namespace,
		Revision:  1,
		IsInstall: !release.Upgrade,
		IsUpgrade: release.Upgrade,
	}
	all, err := chartutil.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, "", fmt.Errorf("checking values: %w", err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, "", fmt.Errorf("rendering: %w", err)
	}
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			notes = text
			delete(files, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		split := releaseutil.SplitManifests(files[name])
		keys := slices.Collect(maps.Keys(split))
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		for _, key := range keys {
			manifests = append(manifests, Manifest{Template: path.Base(name), Text: strings.TrimSpace(split[key])})
		}
	}
	return manifests, notes, nil
}

// of returns the manifests of the given templates, grouped by template.
func of(manifests []Manifest, templates ...string) []Manifest {
	var found []Manifest
	for _, template := range templates {
		for _, m := range manifests {
			if m.Template == template {
				found = append(found, m)
			}
		}
	}
	return slices.Clip(found)
}
