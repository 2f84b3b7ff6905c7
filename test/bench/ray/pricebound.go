package main

import (
	"context"
	_ "embed"
	"fmt"

	"heliostat.dev/heliostat/internal/planner"
)

// boundScript bounds prices from below.
//
//go:embed pricebound.py
var boundScript string

// priceBounder is a process with the solver in it.
type priceBounder struct{ worker *worker }

func startPriceBounder(ctx context.Context, python string) (*priceBounder, error) {
	w, err := startWorker(ctx, python, boundScript)
	if err != nil {
		return nil, err
	}
	return &priceBounder{w}, nil
}

// bound returns a lower bound on the hourly price, in dollars, of any plan that serves all requests.
func (b *priceBounder) bound(s planner.Snapshot) (float64, error) {
	question := struct {
		Snapshot planner.Snapshot `json:"snapshot"`
	}{s}
	var reply struct{ Bound float64 }
	if err := b.worker.ask(question, &reply); err != nil {
		return 0, fmt.Errorf("bounding the price of %s: %w", s.Name, err)
	}
	return reply.Bound, nil
}

// close ends the process.
func (b *priceBounder) close() error { return b.worker.close() }
