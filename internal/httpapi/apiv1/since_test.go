package apiv1

import (
	"testing"
	"time"
)

func TestHowFarBackAnAnswerReachesHasAUnitAndABound(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": MostSince, "720h": MostSince} {
		if got, valid := ReadSince(text); !valid || got != want {
			t.Errorf("%s: %v, %v", text, got, valid)
		}
	}
	for _, text := range []string{"", "d", "7", "7w", "-1h", "0h", "31d", "721h", "1.5h", "9223372036854775807d", "200000000000000d"} {
		if got, valid := ReadSince(text); valid {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
