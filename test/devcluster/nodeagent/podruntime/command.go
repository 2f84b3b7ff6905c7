package podruntime

import (
	"context"
	"errors"
	"fmt"
	"net"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/env"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/rewrite"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

// commandLine returns the command and its environment as Kubernetes defines them, with the changes of package rewrite.
func (c *Container) commandLine(ctx context.Context) ([]string, env.Vars, error) {
	programs, ok := c.pod.rt.ImageDirectory(c.spec.Image)
	if !ok {
		return nil, nil, &waitingError{
			"ErrImagePull",
			fmt.Errorf("image %q is unknown: add it to the Images of the agent", c.spec.Image),
		}
	}
	vars, err := env.Resolve(ctx, c.pod.baseEnv(programs), c.pod.Object(), &c.spec, c.pod.rt.Objects)
	if err != nil {
		return nil, nil, &waitingError{"CreateContainerConfigError", err}
	}
	words := make([]string, 0, len(c.spec.Command)+len(c.spec.Args))
	for _, word := range append(append(words, c.spec.Command...), c.spec.Args...) {
		words = append(words, env.Expand(word, vars))
	}
	if len(words) == 0 {
		return nil, nil, &waitingError{
			"CreateContainerError",
			errors.New("no command: set it in the pod, because images have no commands here"),
		}
	}
	rewriter := c.pod.rewriter(programs)
	if words, err = rewriter.Args(ctx, words); err == nil {
		err = rewriter.Env(ctx, vars)
	}
	if err != nil {
		return nil, nil, &waitingError{"ContainerCreating", err}
	}
	if words[0], err = sandbox.LookPath(words[0], vars["PATH"]); err != nil {
		return nil, nil, &waitingError{"RunContainerError", err}
	}
	return words, vars, nil
}

// baseEnv is the environment that every container of the pod starts with. It has nothing of the agent's environment.
func (p *Pod) baseEnv(programs string) env.Vars {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if programs != "" {
		path = programs + ":" + path
	}
	vars := env.Vars{
		"PATH":     path,
		"HOME":     p.dirs.Home,
		"TMPDIR":   p.dirs.Tmp,
		"HOSTNAME": p.Object().Name,
		"LANG":     "C.UTF-8",
	}
	if host, port, err := net.SplitHostPort(p.rt.APIServer); err == nil {
		vars["KUBERNETES_SERVICE_HOST"] = host
		vars["KUBERNETES_SERVICE_PORT"] = port
		vars["KUBERNETES_SERVICE_PORT_HTTPS"] = port
	}
	return vars
}

// rewriter changes the commands of a container whose image is the directory programs.
func (p *Pod) rewriter(programs string) rewrite.Rewriter {
	return rewrite.Rewriter{
		IP:         p.IP,
		TempDir:    p.dirs.Ray,
		LogMonitor: rewrite.HasLogMonitorFlag(programs),
		Find:       p.rt.Objects.ServiceAddress,
		Port:       p.ports.Port,
		Forward:    p.forward,
	}
}
