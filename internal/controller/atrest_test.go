package controller

import (
	"errors"
	"testing"
	"time"
)

func TestNothingIsDueAtRest(t *testing.T) {
	m, v := newMemory(), viewOf(2)
	v.Cluster.Groups[0].Min = 2
	v.Cluster.IdleTimeout = time.Minute
	m.Remember(&v, settings())
	v = later(v, 40*time.Second)
	for k := range v.State.Nodes {
		v.State.Nodes[k].Idle = 40 * time.Second
	}
	m.Remember(&v, settings())
	i, err := m.Decide(v, settings(), planned, nil)
	if err != nil || !m.AtRest(&v, &i) || m.Motion(&v, &i) != idle {
		t.Fatalf("decided %+v, error %v; want rest", i.Plan, err)
	}
	if got := untilDeadline(&v, &i); got != 20*time.Second+time.Millisecond {
		t.Errorf("the next deadline is in %v, want it when the workers have been idle for a minute", got)
	}
	m.FreshRead(v.Now, errors.New("timeout"))
	if m.AtRest(&v, &i) {
		t.Error("at rest although the RayCluster cannot be read")
	}
	v.Now = v.Now.Add(time.Minute)
	if !m.AtRest(&v, &i) {
		t.Error("not at rest although nothing waits for another reading any more")
	}
	m.FreshRead(v.Now, errors.New("timeout"))
	m.FreshRead(v.Now, nil)
	if !m.AtRest(&v, &i) {
		t.Error("not at rest although the RayCluster could be read again")
	}
}
