package gpuagent

import (
	"context"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// faults are the first fatal XID of each card, by its index. They stay until the agent exits: a card continues to
// answer normally after a fault, so an answer proves nothing. A reset would, but the driver refuses it while a process
// such as this agent has the driver open (docs/reference/facts.md#reset-of-a-card). So you stop the agent before you
// reset a card, and the next agent starts without faults.
type faults map[int]gpuinfo.XIDEvent

// mark adds a card's fault to its report.
func (f faults) mark(card *gpuinfo.Card) {
	fault, known := f[card.Index]
	if !known {
		return
	}
	problem := fault.String()
	if !card.Healthy && card.Problem != "" {
		problem += "; " + card.Problem
	}
	card.Healthy, card.Problem = false, problem
}

// watch subscribes to XIDs. Without them the agent still reads the cards' health.
func (a *Agent) watch() {
	unwatched, err := a.driver.WatchXIDs()
	if err != nil {
		a.log.Warn("the driver does not report XIDs; only cards that do not answer are detected as broken", "error",
			err)
		return
	}
	a.watching = true
	if len(unwatched) > 0 {
		a.log.Warn("the driver does not report XIDs for some cards", "cards", unwatched)
	}
}

// xidWait limits one call of the driver, during which the agent does not notice a signal.
const xidWait = time.Second

// wait returns when the next reading is due: after the interval, or at once after a fatal XID. It returns false if ctx
// ended.
func (a *Agent) wait(ctx context.Context, interval time.Duration) bool {
	due := time.NewTimer(interval)
	defer due.Stop()
	for receiving := a.watching; receiving; {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		default:
		}
		event, happened, err := a.driver.NextXID(xidWait)
		if err != nil {
			// A retry would fail at once, for example while a card is lost. The next reading reports the card.
			a.log.Warn("the driver does not report XIDs until the next reading", "error", err)
			receiving = false
		}
		if happened && a.receive(event) {
			return true
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
		return true
	}
}

// xidKey identifies an XID of a card; card -1 stands for a card that the driver did not name.
type xidKey struct {
	card   int
	number uint64
}

// receive logs an XID, each one once between two readings because a faulty application may cause thousands, and reports
// whether it makes a healthy card unhealthy.
func (a *Agent) receive(event gpuinfo.XIDEvent) (changed bool) {
	key := xidKey{-1, event.Number}
	if event.Card != nil {
		key.card = *event.Card
	}
	if !a.logged[key] {
		a.log.Warn("the driver reports an XID", "card", key.card, "xid", event.String(), "fatal", event.Fatal)
		if a.logged == nil {
			a.logged = map[xidKey]bool{}
		}
		a.logged[key] = true
	}
	_, known := a.faults[key.card]
	if !event.Fatal || event.Card == nil || known {
		return false
	}
	if a.faults == nil {
		a.faults = faults{}
	}
	a.faults[key.card] = event
	return true
}
