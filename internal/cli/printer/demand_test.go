package printer

import (
	"testing"
)

func TestASentenceDoesNotRepeatTheWordsOfItsCode(t *testing.T) {
	for want, reason := range map[string][2]string{
		"too_small: needs 8 GPU, has 1":             {"too_small", "too small: needs 8 GPU, has 1"},
		"cooling_down: for 5m: its pods failed":     {"cooling_down", "cooling down for 5m: its pods failed"},
		"capped: 1 of 2 bundles are served":         {"capped", "Capped: 1 of 2 bundles are served"},
		"launch: launching 1 pod":                   {"launch", "launching 1 pod"},
		"idle: idle workers serve a request longer": {"idle", "idle workers serve a request longer"},
	} {
		if got := codeAndMessage(reason[0], reason[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
