package api

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/api"
)

func TestEveryOperationNeedsAValidRight(t *testing.T) {
	base := "paths:\n  /v1/namespaces/{namespace}/rayclusters/{name}:\n    get:\n      operationId: a\n"
	for want, text := range map[string]string{
		"":                           base + "      x-required-right: {verb: get, resource: rayclusters.ray.io}\n",
		"x-required-right is miss":   base,
		"needs a verb":               base + "      x-required-right: {resource: rayclusters.ray.io}\n",
		"or a path":                  base + "      x-required-right: {verb: get}\n",
		"x-required-right: json":     base + "      x-required-right: get\n",
		`needs "security: []" too`:   base + "      x-required-right: none\n",
		"x-required-right: none\" t": base + "      security: []\n      x-required-right: {verb: get, resource: rayclusters.ray.io}\n",
		"perNamespace is for lists":  base + "      x-required-right: {verb: list, resource: rayclusters.ray.io, perNamespace: true}\n",
		"needs a right on":           base + "      x-required-right: {verb: list, resource: nodes}\n",
	} {
		_, err := readContract([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := readContract(api.Spec); err != nil {
		t.Error(err)
	}
}
