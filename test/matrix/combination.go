package main

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// Combination is a release of each program that Heliostat works with.
type Combination struct {
	Ray        string `json:"ray"`
	KubeRay    string `json:"kubeRay"`
	Kubernetes string `json:"kubernetes"`
}

// String names the combination.
func (c Combination) String() string {
	return fmt.Sprintf("Ray %s, KubeRay %s, Kubernetes %s", c.Ray, c.KubeRay, c.Kubernetes)
}

// combinations returns what to run, the combination of all defaults first.
func combinations() ([]Combination, error) {
	operators, err := kit.Releases(kit.KubeRay)
	if err != nil {
		return nil, err
	}
	planes, err := kit.Releases(kit.Kubernetes)
	if err != nil {
		return nil, err
	}
	return combine(kit.RayVersions(), operators, planes), nil
}

// combine varies one program at a time. The others have their first release.
func combine(rays, operators, planes []string) []Combination {
	var all []Combination
	for _, ray := range rays {
		all = append(all, Combination{ray, operators[0], planes[0]})
	}
	for _, operator := range operators[1:] {
		all = append(all, Combination{rays[0], operator, planes[0]})
	}
	for _, plane := range planes[1:] {
		all = append(all, Combination{rays[0], operators[0], plane})
	}
	return all
}

// choose returns the combinations that have all of the given versions.
func choose(all []Combination, versions []string) ([]Combination, error) {
	chosen := slices.DeleteFunc(slices.Clone(all), func(c Combination) bool {
		return slices.ContainsFunc(versions, func(version string) bool {
			return !slices.Contains([]string{c.Ray, c.KubeRay, c.Kubernetes}, version)
		})
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("ONLY: no combination has all of %s; there are\n%s", strings.Join(versions, ", "),
			lines(all))
	}
	return chosen, nil
}

// lines returns one line for each combination.
func lines(all []Combination) string {
	text := make([]string, len(all))
	for i, c := range all {
		text[i] = c.String()
	}
	return strings.Join(text, "\n")
}
