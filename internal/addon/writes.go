package addon

import (
	"cmp"
	"context"
	"errors"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Writes are what a feature writes beside the RayCluster, such as guards. A write that fails delays the next round, and
// no other write: an admission policy may refuse a single object.
type Writes struct {
	// Careful: a write that was not carried out for any reason delays the next round, because each one reads the API
	// server and Ray again. Otherwise the next cycle decides again after a conflict.
	Careful bool
	// Err is why a write of the last round failed; nil if none did, or if nothing was to be written.
	Err    error
	rest   Pause
	worked bool
}

// retryWithin bounds the pause after a write that failed if others have succeeded.
const retryWithin = 3 * time.Second

// Resting reports whether the pause after a write that failed is not over.
func (w *Writes) Resting(now time.Time) bool { return w.rest.Resting(now) }

// Round carries out up to count writes, as many as one cycle may. write carries out one, and returns its action.
func (w *Writes) Round(
	ctx context.Context, loop Loop, o *Cycle, count int, write func(at int) (Action, error),
) {
	if count == 0 {
		w.Err = nil
		return
	}
	if w.Resting(o.View.Now) {
		return
	}
	var failed error
	before := len(o.Actions)
	loop.WriteRound(ctx, o, count, func(at int) bool {
		started := loop.Now()
		action, err := write(at)
		action.At, action.Took, action.Result = started, loop.Now().Sub(started), ResultOK
		if Failed(err) || w.Careful {
			failed = cmp.Or(failed, err)
		}
		switch {
		case err == nil:
			w.worked = true
		case ctx.Err() != nil, errors.Is(err, nodepool.ErrReadOnly), errors.Is(err, nodepool.ErrNotLeading):
			return false
		case Failed(err):
			action.Result, action.Message = ResultError, err.Error()
		default:
			action.Result = ResultConflict
		}
		o.Actions = append(o.Actions, action)
		return true
	})
	switch longest := LongestPause; {
	case failed != nil:
		if w.worked && !w.Careful {
			longest = retryWithin
		}
		w.rest.FailWithin(o.View.Now, longest)
		w.Err = failed
	case len(o.Actions) > before:
		w.rest, w.Err = Pause{}, nil
	}
}

// Failed reports whether a write failed, and not because its object has changed or another process decides about it.
func Failed(err error) bool {
	return err != nil && !errors.Is(err, nodepool.ErrConflict) && !errors.Is(err, nodepool.ErrGone) &&
		!errors.Is(err, nodepool.ErrReadOnly) && !errors.Is(err, nodepool.ErrNotLeading)
}
