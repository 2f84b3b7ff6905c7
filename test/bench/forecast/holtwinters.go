package main

import (
	"math"
	"slices"
)

// season is a day of slots.
const season = 288

// holtWinters is the additive method of Holt and Winters with a season of a day: level, trend, and a value for each
// slot of the day, each smoothed exponentially.
type holtWinters struct {
	alpha, beta, gamma float64
	level, trend       float64
	seasonal           []float64
	slots              int
	begun              []float64 // the first two days, from which the method starts
	// steps is how far ahead it looks, ahead the forecasts that are not due yet, the next one first.
	steps  int
	ahead  []float64
	errors []float64 // of the last week, the latest last
	sorted []float64
}

// observe adds the demand of the next slot.
func (h *holtWinters) observe(y float64) {
	if len(h.ahead) == h.steps {
		h.errors = append(h.errors, y-h.ahead[0])
		h.ahead = h.ahead[1:]
		if len(h.errors) > 7*season {
			h.errors = h.errors[1:]
		}
	}
	if h.seasonal == nil {
		if h.begun = append(h.begun, y); len(h.begun) == 2*season {
			h.begin()
		}
		h.slots++
		return
	}
	at := h.slots % season
	level := h.alpha*(y-h.seasonal[at]) + (1-h.alpha)*(h.level+h.trend)
	h.trend = h.beta*(level-h.level) + (1-h.beta)*h.trend
	h.level = level
	h.seasonal[at] = h.gamma*(y-level) + (1-h.gamma)*h.seasonal[at]
	h.slots++
	h.ahead = append(h.ahead, h.point(h.steps))
}

func (h *holtWinters) begin() {
	for _, y := range h.begun {
		h.level += y / float64(len(h.begun))
	}
	h.seasonal = make([]float64, season)
	for i, y := range h.begun {
		h.seasonal[i%season] += (y - h.level) / 2
	}
}

// point returns the forecast for some slots ahead; 1 is the next slot.
func (h *holtWinters) point(steps int) float64 {
	return h.level + float64(steps)*h.trend + h.seasonal[(h.slots+steps-1)%season]
}

// keep returns the workers for the slots from the next one to steps ahead: the highest forecast, and as much more as a
// quantile of the last week's errors.
func (h *holtWinters) keep(quantile float64) int {
	if h.seasonal == nil || len(h.errors) < season {
		return 0
	}
	most := math.Inf(-1)
	for i := 1; i <= h.steps; i++ {
		most = max(most, h.point(i))
	}
	if h.sorted == nil || h.slots%12 == 0 { // once an hour
		h.sorted = slices.Sorted(slices.Values(h.errors))
	}
	more := h.sorted[min(int(quantile*float64(len(h.sorted))), len(h.sorted)-1)]
	return max(int(math.Round(most+more)), 0)
}

// fitted returns the method with those of a few weights that have the least squared error over some slots.
func fitted(slots []float64, steps int) *holtWinters {
	var best holtWinters
	least := math.Inf(1)
	for _, alpha := range []float64{0.02, 0.1, 0.3, 0.7} {
		for _, beta := range []float64{0, 0.005} {
			for _, gamma := range []float64{0.05, 0.15, 0.4} {
				h := holtWinters{alpha: alpha, beta: beta, gamma: gamma, steps: steps}
				squares := 0.0
				for _, y := range slots {
					seen := len(h.errors)
					h.observe(y)
					if len(h.errors) > seen || seen == 7*season {
						squares += h.errors[len(h.errors)-1] * h.errors[len(h.errors)-1]
					}
				}
				if squares < least {
					least, best = squares, holtWinters{alpha: alpha, beta: beta, gamma: gamma, steps: steps}
				}
			}
		}
	}
	return &best
}
