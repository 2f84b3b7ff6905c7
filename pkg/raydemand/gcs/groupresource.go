package gcs

import "regexp"

// placementGroupResource matches <resource>_group_<id> and <resource>_group_<index>_<id>, the names that Ray generates
// for tasks in a placement group. The id is 18 bytes in hex. A custom resource with the name my_group_a does not match.
var placementGroupResource = regexp.MustCompile(`_group_(?:[0-9]+_)?[0-9a-f]{36}$`)

func isPlacementGroupResource(name string) bool { return placementGroupResource.MatchString(name) }

func hasPlacementGroupResource(resources map[string]float64) bool {
	for name := range resources {
		if isPlacementGroupResource(name) {
			return true
		}
	}
	return false
}
