package kit

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"
)

// Needs is what to build for a command.
type Needs struct {
	Parts []Part
	// Releases are the releases of modules, for example "1.34.2" of Kubernetes. A module without one has its default.
	Releases map[string]string
	// Ray are the Ray versions whose environment is needed.
	Ray []string
	// Programs are built each time, because their source may have changed. The Go build cache has the rest.
	Programs []Program
}

// Cluster returns the needs of a default cluster. They include the operator, which KubeRay's resource definitions come
// with.
func Cluster() Needs {
	return Needs{Parts: []Part{Etcd, APIServer, Scheduler, ControllerManager, Operator}, Ray: []string{DefaultRay}}
}

// Kit is what was built.
type Kit struct {
	parts map[Part]plan
	rays  map[string]rayEnv
}

// Bin returns the path of a part's program, or "" for a part outside the needs.
func (k *Kit) Bin(part Part) string {
	p, ok := k.parts[part]
	if !ok {
		return ""
	}
	return p.program()
}

// File returns the path of a file that belongs to a part.
func (k *Kit) File(part Part, name string) string {
	return filepath.Join(k.parts[part].dir, name)
}

// RayEnv returns the directory of the virtual environment of a Ray version, or "" for a version outside the needs. Its
// programs are in the directory bin below it.
func (k *Kit) RayEnv(version string) string { return k.rays[version].dir }

// Ensure builds what is missing of the needs and tells out how it goes; what the machine lacks for that is said before.
// Nothing is written to out when nothing is missing.
func Ensure(ctx context.Context, needs Needs, out io.Writer) (*Kit, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b, err := newBuilder(cache)
	if err != nil {
		return nil, err
	}
	kit := &Kit{parts: map[Part]plan{}, rays: map[string]rayEnv{}}
	var parts []plan
	for _, part := range needs.Parts {
		p, err := b.plan(part, needs.Releases)
		if err != nil {
			return nil, err
		}
		kit.parts[part] = p
		if !p.built() {
			parts = append(parts, p)
		}
	}
	var rays []rayEnv
	for _, version := range needs.Ray {
		env, err := planRayEnv(b.source, cache, version)
		if err != nil {
			return nil, err
		}
		kit.rays[version] = env
		if !env.built() {
			rays = append(rays, env)
		}
	}
	fresh, again := splitPrograms(needs.Programs)
	if len(parts)+len(rays) > 0 {
		if err := checkBuild(cache, len(rays) > 0); err != nil {
			return nil, err
		}
	}
	if len(parts)+len(rays)+len(fresh) > 0 {
		if err := b.buildAll(ctx, parts, rays, fresh, out); err != nil {
			return nil, err
		}
	}
	// What was built before takes a few seconds at most, about which there is nothing to tell.
	for _, program := range again {
		if err := program.build(ctx); err != nil {
			return nil, err
		}
	}
	return kit, nil
}

// buildAll builds parts one after the other, since each keeps all cores busy, and the Ray environments, which wait for
// the network and the disk, beside them.
func (b *builder) buildAll(ctx context.Context, parts []plan, rays []rayEnv, programs []Program, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := newProgress(out, len(parts)+len(rays)+len(programs))
	defer p.close()

	var group sync.WaitGroup
	group.Go(func() {
		for _, part := range parts {
			if err := makeStep(p, part.title(), part.estimate, func() error { return b.build(ctx, part) }); err != nil {
				cancel(err)
				return
			}
		}
		for _, program := range programs {
			if err := makeStep(p, program.Title, program.estimate(),
				func() error { return program.build(ctx) }); err != nil {
				cancel(err)
				return
			}
		}
	})
	group.Go(func() {
		for _, env := range rays {
			if err := makeStep(p, env.title(), env.estimate, func() error { return env.build(ctx) }); err != nil {
				cancel(err)
				return
			}
		}
	})
	group.Wait()
	return context.Cause(ctx)
}

// makeStep runs build as one step of the progress.
func makeStep(p *progress, name string, estimate time.Duration, build func() error) error {
	s := p.begin(name, estimate)
	if err := build(); err != nil {
		s.end("failed")
		return fmt.Errorf("making %s: %w", name, err)
	}
	s.end("built")
	return nil
}
