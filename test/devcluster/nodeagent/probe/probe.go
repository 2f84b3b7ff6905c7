package probe

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Target is the container that probes check.
type Target struct {
	// IP is the address of the pod.
	IP string
	// Ports are the named ports of the container.
	Ports []corev1.ContainerPort
	// Exec runs a command in the container.
	Exec func(ctx context.Context, command []string, output io.Writer) error
}

// Watch checks periodically and calls verdict for as many successes or failures in a row as the thresholds require, and
// for every further failure. It returns when ctx is canceled or verdict returns false.
func (t Target) Watch(ctx context.Context, p *corev1.Probe, started time.Time, verdict func(ok bool) bool) {
	period := seconds(p.PeriodSeconds, 10)
	due := time.NewTimer(time.Until(started.Add(seconds(p.InitialDelaySeconds, 0))))
	defer due.Stop()
	row := streak{success: max(p.SuccessThreshold, 1), failure: orDefault(p.FailureThreshold, 3)}
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		due.Reset(period)
		checking, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds, 1))
		err := t.Check(checking, p.ProbeHandler)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if ok, decided := row.add(err == nil); decided && !verdict(ok) {
			return
		}
	}
}

// streak turns results into verdicts.
type streak struct {
	success, failure int32
	last             bool
	length           int32
}

// add adds a result. decided is true if the row of equal results is long enough for a verdict.
func (s *streak) add(ok bool) (verdict, decided bool) {
	if s.length == 0 || ok != s.last {
		s.last, s.length = ok, 0
	}
	s.length++
	threshold := s.failure
	if ok {
		threshold = s.success
	}
	return ok, s.length == threshold || (s.length > threshold && !ok)
}

func seconds(n, byDefault int32) time.Duration {
	return time.Duration(orDefault(n, byDefault)) * time.Second
}

func orDefault(n, byDefault int32) int32 {
	if n == 0 {
		return byDefault
	}
	return n
}
