package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// serviceAccountDir is where every client library looks for a pod's token.
	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the life of a pod's token. Tokens are not renewed: no pod of a development cluster lives longer.
	tokenSeconds = 7 * 24 * 3600
)

// podDirs are the directories of one pod.
type podDirs struct {
	root    string // below which all others are, save ray and tmp
	home    string // HOME
	tmp     string // TMPDIR, below ray: programs make Unix sockets there, whose paths must be short
	scratch string // empty; see container.sh
	ray     string // Ray's temp dir, see rayDirs
}

func (a *Agent) makePodDirs(pod *corev1.Pod) (podDirs, error) {
	root := filepath.Join(a.cfg.Dir, "pods", string(pod.UID))
	d := podDirs{
		root:    root,
		home:    filepath.Join(root, "home"),
		scratch: filepath.Join(root, "scratch"),
	}
	if err := os.RemoveAll(root); err != nil {
		return d, fmt.Errorf("emptying pod directory: %w", err)
	}
	ray, err := a.rayDirs.make()
	if err != nil {
		return d, err
	}
	d.ray, d.tmp = ray, filepath.Join(ray, "tmp")
	for _, dir := range []string{d.home, d.tmp, d.scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return d, fmt.Errorf("making pod directory: %w", err)
		}
	}
	return d, nil
}

func (d podDirs) remove() error {
	return errors.Join(os.RemoveAll(d.root), os.RemoveAll(d.ray))
}

// volumes are the pod's volumes as directories of the machine, by volume name.
type volumes map[string]string

// makeVolumes materialises every volume of the pod. Volumes are made once: later changes of a ConfigMap or Secret do
// not appear.
func (p *pod) makeVolumes(ctx context.Context) (volumes, error) {
	pod := p.snapshot()
	made := volumes{}
	for _, v := range pod.Spec.Volumes {
		dir := filepath.Join(p.dirs.root, "volumes", v.Name)
		if mountedAt(pod, v.Name, rayTempDir) {
			// Ray's session directory has one place, and its name inside (Ray's sidecars look here) leads to the same.
			dir = p.dirs.ray
		}
		path, err := p.makeVolume(ctx, v, dir)
		if err != nil {
			return nil, fmt.Errorf("making volume %s: %w", v.Name, err)
		}
		made[v.Name] = path
	}
	return made, nil
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

func (p *pod) makeVolume(ctx context.Context, v corev1.Volume, dir string) (string, error) {
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
		files, err := p.project(ctx, projection)
		if err != nil {
			return "", err
		}
		if err := writeFiles(dir, files); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// projectionsOf says every kind of volume that is made of files in terms of the most general one.
func projectionsOf(v corev1.Volume) ([]corev1.VolumeProjection, error) {
	switch {
	case v.Projected != nil:
		return v.Projected.Sources, nil
	case v.Secret != nil:
		return []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName},
			Items:                v.Secret.Items,
			Optional:             v.Secret.Optional,
		}}}, nil
	case v.ConfigMap != nil:
		return []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference,
			Items:                v.ConfigMap.Items,
			Optional:             v.ConfigMap.Optional,
		}}}, nil
	case v.DownwardAPI != nil:
		return []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: v.DownwardAPI.Items}}}, nil
	}
	return nil, errors.New(
		"this kind of volume is not supported: want emptyDir, hostPath, secret, configMap, downwardAPI or projected")
}

// project returns a projection's files by their path in the volume.
func (p *pod) project(ctx context.Context, projection corev1.VolumeProjection) (map[string]string, error) {
	pod, from := p.snapshot(), p.agent()
	switch {
	case projection.Secret != nil:
		values, err := from.Secret(ctx, pod.Namespace, projection.Secret.Name)
		return items(values, err, projection.Secret.Items, projection.Secret.Optional)
	case projection.ConfigMap != nil:
		values, err := from.ConfigMap(ctx, pod.Namespace, projection.ConfigMap.Name)
		return items(values, err, projection.ConfigMap.Items, projection.ConfigMap.Optional)
	case projection.ServiceAccountToken != nil:
		token, err := from.token(ctx, pod, projection.ServiceAccountToken.Audience)
		return map[string]string{projection.ServiceAccountToken.Path: token}, err
	case projection.DownwardAPI != nil:
		return downwardFiles(pod, projection.DownwardAPI.Items)
	}
	return nil, errors.New("this kind of projection is not supported")
}

func items(values map[string]string, err error, wanted []corev1.KeyToPath, optional *bool) (map[string]string, error) {
	if err != nil {
		if isTrue(optional) {
			return nil, nil
		}
		return nil, err
	}
	if len(wanted) == 0 {
		return values, nil
	}
	files := map[string]string{}
	for _, item := range wanted {
		value, ok := values[item.Key]
		if !ok && !isTrue(optional) {
			return nil, fmt.Errorf("references non-existent key %s", item.Key)
		}
		files[item.Path] = value
	}
	return files, nil
}

func downwardFiles(pod *corev1.Pod, wanted []corev1.DownwardAPIVolumeFile) (map[string]string, error) {
	files := map[string]string{}
	for _, item := range wanted {
		if item.FieldRef == nil {
			return nil, fmt.Errorf("file %s: only fieldRef is supported", item.Path)
		}
		value, err := fieldValue(pod, item.FieldRef.FieldPath)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", item.Path, err)
		}
		files[item.Path] = value
	}
	return files, nil
}

func writeFiles(dir string, files map[string]string) error {
	for _, path := range sortedKeys(files) {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("writing %q: the path leaves the volume", path)
		}
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(files[path]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeServiceAccountDir makes the directory that the ServiceAccount admission would have mounted. It returns "" for
// a pod that has one, or wants none.
func (p *pod) makeServiceAccountDir(ctx context.Context) (string, error) {
	pod := p.snapshot()
	automount := pod.Spec.AutomountServiceAccountToken
	if (automount != nil && !*automount) || mountsServiceAccount(pod) {
		return "", nil
	}
	token, err := p.agent().token(ctx, pod, "")
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(p.agent().cfg.CAFile)
	if err != nil {
		return "", fmt.Errorf("reading the API server's certificate authority: %w", err)
	}
	dir := filepath.Join(p.dirs.root, "serviceaccount")
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

// token asks the API server for a token of the pod's service account, bound to the pod: it dies with it. A pod that
// names no account (the ServiceAccount admission would have filled it in) gets an unbound token of the default one.
func (a *Agent) token(ctx context.Context, pod *corev1.Pod, audience string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	} else {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	reply, err := a.client.CoreV1().
		ServiceAccounts(pod.Namespace).
		CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s/%s: %w", pod.Namespace, account, err)
	}
	return reply.Status.Token, nil
}

// mounts lists what appears where in the container, outer directories first.
func (p *pod) mounts(c *corev1.Container) ([]mount, error) {
	mounts := []mount{}
	if p.serviceAccountDir != "" {
		mounts = append(mounts, mount{source: p.serviceAccountDir, target: serviceAccountDir, readOnly: true})
	}
	ray := false
	for _, m := range c.VolumeMounts {
		source, ok := p.volumes[m.Name]
		if !ok {
			return nil, fmt.Errorf("mounting %s: no volume %q", m.MountPath, m.Name)
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
		ray = ray || target == rayTempDir
		mounts = append(mounts, mount{source: source, target: target, readOnly: m.ReadOnly})
	}
	if !ray {
		mounts = append(mounts, mount{source: p.dirs.ray, target: rayTempDir})
	}
	slices.SortStableFunc(mounts, func(a, b mount) int {
		return strings.Count(a.target, "/") - strings.Count(b.target, "/")
	})
	return mounts, nil
}

// ConfigMap implements keyValues.
func (a *Agent) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := a.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range object.BinaryData {
		values[key] = string(value)
	}
	for key, value := range object.Data {
		values[key] = value
	}
	return values, nil
}

// Secret implements keyValues.
func (a *Agent) Secret(ctx context.Context, namespace, name string) (map[string]string, error) {
	object, err := a.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range object.Data {
		values[key] = string(value)
	}
	return values, nil
}
