package apiv1

import (
	"fmt"
	"strconv"
	"time"
)

// MostSince is how far back costs and savings reach.
const MostSince = 30 * 24 * time.Hour

// WantSince describes how far back an answer is to reach, in errors.
var WantSince = fmt.Sprintf("minutes, hours or days up to %dd, such as 90m, 24h or 7d", int(MostSince.Hours())/24)

// ReadSince reads how far back an answer is to reach: 90m, 24h or 7d.
func ReadSince(text string) (back time.Duration, valid bool) {
	if text == "" {
		return 0, false
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || n <= 0 || unit == 0 || time.Duration(n) > MostSince/unit {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
