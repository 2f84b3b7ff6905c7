package volume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/env"
)

// projectionsOf returns a volume of files as the projections of a projected volume, the most general kind.
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
		"unsupported volume: want emptyDir, hostPath, secret, configMap, downwardAPI or projected")
}

// project returns the contents of a projection's files by their path in the volume.
func (m Maker) project(
	ctx context.Context, pod *corev1.Pod, projection corev1.VolumeProjection,
) (map[string]string, error) {
	switch {
	case projection.Secret != nil:
		values, err := m.Source.Secret(ctx, pod.Namespace, projection.Secret.Name)
		return items(values, err, projection.Secret.Items, projection.Secret.Optional)
	case projection.ConfigMap != nil:
		values, err := m.Source.ConfigMap(ctx, pod.Namespace, projection.ConfigMap.Name)
		return items(values, err, projection.ConfigMap.Items, projection.ConfigMap.Optional)
	case projection.ServiceAccountToken != nil:
		token, err := m.Source.Token(ctx, pod, projection.ServiceAccountToken.Audience)
		return map[string]string{projection.ServiceAccountToken.Path: token}, err
	case projection.DownwardAPI != nil:
		return downwardFiles(pod, projection.DownwardAPI.Items)
	}
	return nil, errors.New("unsupported projection: want secret, configMap, serviceAccountToken or downwardAPI")
}

func items(values map[string]string, err error, wanted []corev1.KeyToPath, optional *bool) (map[string]string, error) {
	if err != nil {
		if ptr.Deref(optional, false) {
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
		if !ok && !ptr.Deref(optional, false) {
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
		value, err := env.FieldValue(pod, item.FieldRef.FieldPath)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", item.Path, err)
		}
		files[item.Path] = value
	}
	return files, nil
}

func writeFiles(dir string, files map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
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
