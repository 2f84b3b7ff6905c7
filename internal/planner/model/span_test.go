package model

import (
	"math"
	"testing"
)

func TestALengthOfTimeHasThreeDigitsAtMostOfAUnit(t *testing.T) {
	for seconds, want := range map[float64]string{
		-3: "0s", 0: "0s", 0.0978: "98ms", 0.9999: "1s", 1.04: "1s", 9.34: "9.3s", 9.96: "10s", 10.2: "10s", 61: "61s", 119.4: "119s", 120: "2m", 150: "2m30s",
		599.7: "10m", 3600: "60m", 3 * hour: "3h", 12000: "3h20m", 20 * hour: "20h", 2 * day: "2d", 273600: "3d4h", 400 * day: "400d", 3 * year: "3y",
		math.MaxFloat64: "31709791y",
	} {
		if got := Span(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}
