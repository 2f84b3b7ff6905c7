package kit

import (
	"fmt"
	"go/version"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Kubernetes, KubeRay and KueueModule are the modules of which a dev cluster can run several releases.
const (
	Kubernetes  = "k8s.io/kubernetes"
	KubeRay     = "github.com/ray-project/kuberay/ray-operator"
	KueueModule = "sigs.k8s.io/kueue"
)

// Releases returns the releases of a module that a dev cluster can run: the default first, then the newest first.
func Releases(module string) ([]string, error) {
	source, err := sourceDir()
	if err != nil {
		return nil, err
	}
	return releasesIn(source, module)
}

// releasesIn returns the releases that the modules below source pin. A release other than the default has a module of
// its own, for example releases/kubernetes-1.34.2.
func releasesIn(source, module string) ([]string, error) {
	r, err := recipeOfModule(module)
	if err != nil {
		return nil, err
	}
	gomod, err := os.ReadFile(filepath.Join(source, r.moduleDir, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("reading the releases of %s: %w", module, err)
	}
	usual, err := requiredVersion(gomod, module)
	if err != nil {
		return nil, fmt.Errorf("reading the releases of %s: %w", module, err)
	}
	prefix := filepath.Join(source, releaseDir(module, ""))
	others, err := filepath.Glob(prefix + "*")
	if err != nil {
		return nil, fmt.Errorf("reading the releases of %s: %w", module, err)
	}
	for i, dir := range others {
		others[i] = strings.TrimPrefix(dir, prefix)
	}
	slices.SortFunc(others, func(a, b string) int { return version.Compare("go"+b, "go"+a) })
	return append([]string{strings.TrimPrefix(usual, "v")}, others...), nil
}

// releaseDir is the directory of the module that pins a release other than the default.
func releaseDir(module, release string) string {
	return filepath.Join("releases", path.Base(module)+"-"+release)
}

// recipeOfModule returns the recipe of the first part that a module owns.
func recipeOfModule(module string) (recipe, error) {
	for _, r := range recipes {
		if r.module == module {
			return r, nil
		}
	}
	return recipe{}, fmt.Errorf("module %q owns no part", module)
}

// pinned returns the recipe with the module that pins a release of its part. The release "" is the default.
func (b *builder) pinned(r recipe, release string) (recipe, error) {
	if release == "" {
		return r, nil
	}
	known, err := releasesIn(b.source, r.module)
	if err != nil {
		return recipe{}, err
	}
	switch slices.Index(known, release) {
	case -1:
		return recipe{}, fmt.Errorf("release %q of %s is not pinned; pinned are %v", release, r.part, known)
	case 0:
		return r, nil
	}
	r.moduleDir = releaseDir(r.module, release)
	return r, nil
}
