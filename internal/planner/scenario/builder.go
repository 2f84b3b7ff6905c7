package scenario

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// builder puts entries into a snapshot.
type builder struct {
	file     string
	snapshot *model.Snapshot
	nodes    []pendingNode // nodes to complete after all groups are known
}

func (b *builder) read(e entry) error {
	tokens, err := scan(e.text)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, err)
	}
	r := &reader{tokens: tokens, about: e.section}
	switch e.section {
	case sectionCluster:
		b.cluster(r)
	case sectionPolicy:
		b.policy(r)
	case sectionGroups:
		b.group(r)
	case sectionHead:
		b.head(r, e)
	case sectionNodes:
		b.node(r, e)
	case sectionDemand:
		b.demand(r)
	case sectionWarm:
		b.warm(r)
	}
	if r.err != nil {
		return fmt.Errorf("%s:%d: %w", b.file, e.line+1, r.err)
	}
	return nil
}

func (b *builder) cluster(r *reader) {
	s := b.snapshot
	r.attributes(map[string]func(){
		"name":                 func() { s.Name = r.text("the RayCluster's name") },
		"taken":                func() { s.TakenAt = r.moment("taken") },
		"max-workers":          func() { s.MaxWorkers = pointer(r.count("max-workers")) },
		"mode":                 func() { s.UpscalingMode = r.mode() },
		"idle-timeout":         func() { s.IdleTimeoutSeconds = pointer(r.seconds("idle-timeout")) },
		"ignore-launch-config": func() { s.LaunchConfigCheckDisabled = true },
		"isolation": func() {
			s.Isolation = nodepool.RequiredIsolation(r.oneOf("isolation", requiredIsolations))
		},
	})
}

var requiredIsolations = []string{
	string(nodepool.RequireHardware), string(nodepool.RequireLimit), string(nodepool.AnyIsolation),
}

func (r *reader) mode() string {
	return r.oneOf("mode", []string{"Default", "Aggressive", "Conservative"})
}

// oneOf reads one of a few words.
func (r *reader) oneOf(what string, words []string) string {
	text := r.text(what + ": " + list(words))
	if !slices.Contains(words, text) {
		r.fail("%s %q: want %s", what, text, list(words))
	}
	return text
}

func (b *builder) policy(r *reader) {
	p := &b.snapshot.Policy
	r.attributes(map[string]func(){
		"work":          func() { p.Work = int64(r.count("work")) },
		"max-in-flight": func() { p.MaxInFlight = r.count("max-in-flight") },
	})
}

func pointer[T any](value T) *T { return &value }
