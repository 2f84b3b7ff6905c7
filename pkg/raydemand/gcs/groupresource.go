package gcs

import "regexp"

// placementGroupResource matches <resource>_group_<id> and <resource>_group_<index>_<id>, which Ray makes up for
// tasks inside a placement group (id: 18 bytes in hex). A user's resource called my_group_a is none of them.
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
