package kit

import (
	"fmt"
	"path/filepath"
	"time"
)

// DefaultRay is the default version of Ray in pods.
const DefaultRay = "2.60.0"

// rayReleases lists the Ray versions that the dev cluster can run, as published on the package index. Their packages
// are pinned by ray/ray-<version>.lock. The first is the default.
var rayReleases = []release{
	{name: "Ray", version: DefaultRay, minPython: 10, maxPython: 14},
	{name: "Ray", version: "2.52.0", minPython: 10, maxPython: 13},
	{name: "Ray", version: "2.40.0", minPython: 9, maxPython: 12},
}

// RayVersions returns the available Ray versions.
func RayVersions() []string {
	versions := make([]string, len(rayReleases))
	for i, r := range rayReleases {
		versions[i] = r.version
	}
	return versions
}

// rayEnv is a virtual environment with one Ray version.
type rayEnv struct {
	release
	venv
	estimate time.Duration
}

// planRayEnv works out where the environment of a Ray version belongs.
func planRayEnv(source, cache, version string) (rayEnv, error) {
	known, err := rayReleaseOf(version)
	if err != nil {
		return rayEnv{}, err
	}
	lock := filepath.Join(source, "ray", "ray-"+version+".lock")
	env, err := planVenv(filepath.Join(cache, "ray"), lock, known)
	if err != nil {
		return rayEnv{}, err
	}
	return rayEnv{release: known, venv: env, estimate: time.Minute}, nil
}

// rayReleaseOf returns the release of a Ray version.
func rayReleaseOf(version string) (release, error) {
	for _, r := range rayReleases {
		if r.version == version {
			return r, nil
		}
	}
	return release{}, fmt.Errorf("Ray %q has no pinned packages; available are %v", version, RayVersions())
}

// title is the environment's name in messages.
func (e rayEnv) title() string { return "Ray " + e.version }
