package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/env"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

// serviceAccountDir is where client libraries look for a pod's token.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Source reads the objects that volumes refer to.
type Source interface {
	env.Source
	// Token requests a token of the pod's service account. An empty audience is that of the API server.
	Token(ctx context.Context, pod *corev1.Pod, audience string) (string, error)
}

// Volumes are the volumes of one pod as directories of the machine.
type Volumes struct {
	dirs           PodDirs
	paths          map[string]string // by the name of the volume
	serviceAccount string            // "" if the pod has a volume for it, or needs none
}

// Maker makes the volumes of pods.
type Maker struct {
	// Source reads the objects that volumes refer to.
	Source Source
	// CAFile is the file with the certificate authority of the API server.
	CAFile string
}

// Make writes the files of all volumes of the pod, once: later changes of a ConfigMap or Secret do not appear.
func (m Maker) Make(ctx context.Context, pod *corev1.Pod, dirs PodDirs) (Volumes, error) {
	made := Volumes{dirs: dirs, paths: map[string]string{}}
	for _, v := range pod.Spec.Volumes {
		dir := filepath.Join(dirs.Root, "volumes", v.Name)
		if mountedAt(pod, v.Name, RayTempDir) {
			// Ray's processes and its sidecars, which look in RayTempDir, share one session directory.
			dir = dirs.Ray
		}
		path, err := m.makeVolume(ctx, pod, v, dir)
		if err != nil {
			return Volumes{}, fmt.Errorf("making volume %s: %w", v.Name, err)
		}
		made.paths[v.Name] = path
	}
	var err error
	made.serviceAccount, err = m.makeServiceAccount(ctx, pod, dirs)
	return made, err
}

func mountedAt(pod *corev1.Pod, volume, path string) bool {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			if m.Name == volume && filepath.Clean(m.MountPath) == path && m.SubPath == "" {
				return true
			}
		}
	}
	return false
}

func (m Maker) makeVolume(ctx context.Context, pod *corev1.Pod, v corev1.Volume, dir string) (string, error) {
	if v.HostPath != nil {
		return v.HostPath.Path, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if v.EmptyDir != nil {
		return dir, nil
	}
	projections, err := projectionsOf(v)
	if err != nil {
		return "", err
	}
	for _, projection := range projections {
		files, err := m.project(ctx, pod, projection)
		if err != nil {
			return "", err
		}
		if err := writeFiles(dir, files); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// makeServiceAccount makes the directory that the ServiceAccount admission would have mounted. It returns "" if the pod
// has a volume for it, or needs none.
func (m Maker) makeServiceAccount(ctx context.Context, pod *corev1.Pod, dirs PodDirs) (string, error) {
	automount := pod.Spec.AutomountServiceAccountToken
	if (automount != nil && !*automount) || mountsServiceAccount(pod) {
		return "", nil
	}
	token, err := m.Source.Token(ctx, pod, "")
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(m.CAFile)
	if err != nil {
		return "", fmt.Errorf("reading the API server's certificate authority: %w", err)
	}
	dir := filepath.Join(dirs.Root, "serviceaccount")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, writeFiles(dir, map[string]string{"token": token, "ca.crt": string(ca), "namespace": pod.Namespace})
}

func mountsServiceAccount(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if mountedAt(pod, v.Name, serviceAccountDir) {
			return true
		}
	}
	return false
}

// Mounts lists the mounts of a container, outer directories first.
func (v Volumes) Mounts(c *corev1.Container) ([]sandbox.Mount, error) {
	mounts := []sandbox.Mount{}
	if v.serviceAccount != "" {
		mounts = append(mounts, sandbox.Mount{Source: v.serviceAccount, Target: serviceAccountDir, ReadOnly: true})
	}
	hasRay := false
	for _, m := range c.VolumeMounts {
		source, ok := v.paths[m.Name]
		if !ok {
			return nil, fmt.Errorf("mounting %s: the pod has no volume %q", m.MountPath, m.Name)
		}
		if m.SubPath != "" {
			source = filepath.Join(source, m.SubPath)
			if _, err := os.Stat(source); errors.Is(err, os.ErrNotExist) {
				if err := os.MkdirAll(source, 0o777); err != nil {
					return nil, fmt.Errorf("mounting %s: %w", m.MountPath, err)
				}
			}
		}
		target := filepath.Clean(m.MountPath)
		hasRay = hasRay || target == RayTempDir
		mounts = append(mounts, sandbox.Mount{Source: source, Target: target, ReadOnly: m.ReadOnly})
	}
	if !hasRay {
		mounts = append(mounts, sandbox.Mount{Source: v.dirs.Ray, Target: RayTempDir})
	}
	slices.SortStableFunc(mounts, func(a, b sandbox.Mount) int {
		return strings.Count(a.Target, "/") - strings.Count(b.Target, "/")
	})
	return mounts, nil
}
