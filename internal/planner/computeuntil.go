package planner

// brokenOff is the panic that ends a planning nobody waits for any more. It leaves no planning behind that could be looked at.
type brokenOff struct{}

// ComputeUntil is Compute, and gives up soon after stop is closed: it reports false then, and there is no plan. It is for plans that
// somebody asked for and may cease to wait for. A nil stop never ends it.
func ComputeUntil(stop <-chan struct{}, s Snapshot, policy Policy) (plan Plan, done bool) {
	done = unlessBrokenOff(func() {
		p, given, out := decideUntil(stop, &s, policy)
		plan = p.report(given, out)
	})
	return plan, done
}

// unlessBrokenOff reports whether something was done to its end.
func unlessBrokenOff(do func()) (done bool) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, broken := cause.(brokenOff); !broken {
				panic(cause)
			}
		}
	}()
	do()
	return true
}

// breakOff ends the planning when nobody waits for it any more. It stands where each further step takes at most some milliseconds.
func (r *roster) breakOff() {
	select {
	case <-r.broken:
		panic(brokenOff{})
	default:
	}
}
