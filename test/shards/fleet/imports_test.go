package fleet

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheFleetKnowsNothingOfShards(t *testing.T) {
	importtest.Dependencies(t, map[string]string{
		"pkg/shard":         "the fleet is there for any number of writers",
		"test/shards/terms": "the fleet does not judge its writers",
	})
}
