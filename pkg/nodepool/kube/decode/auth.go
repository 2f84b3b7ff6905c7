package decode

import (
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about how the GCS authenticates its callers.
const (
	AuthTokenUnknown = "auth-token-unknown"
	TLSSecretUnknown = "tls-secret-unknown"
	// KubernetesTokenUnset: the GCS requires a ServiceAccount token, and Options.KubernetesTokenFile names none.
	KubernetesTokenUnset = "kubernetes-token-unset"
)

const tokenKey = "auth_token"

// describeAuth returns how the GCS authenticates its callers: from spec.authOptions and spec.tlsOptions, else from the
// environment of the head's Ray container (docs/reference/facts.md#token-and-tls).
func describeAuth(spec Fields, name string, head *corev1.Pod) nodepool.Auth {
	var ray corev1.Container
	var volumes []corev1.Volume
	if head != nil && len(head.Spec.Containers) > 0 {
		ray, volumes = head.Spec.Containers[0], head.Spec.Volumes
	}
	auth := tokenAuth(spec, name, ray)
	auth.TLSSecret = tlsSecret(spec, name, ray, volumes)
	if !auth.Required {
		reportEnvironment(spec, ray, "RAY_AUTH_MODE", "a token")
	}
	if auth.TLSSecret == "" {
		reportEnvironment(spec, ray, "RAY_USE_TLS", "mutual TLS")
	}
	return auth
}

// reportEnvironment adds a finding if a variable that makes the GCS require more comes, or may come, from a source that
// Heliostat does not read. Heliostat then calls the head without it.
func reportEnvironment(spec Fields, ray corev1.Container, variable, wants string) {
	severity, seen := raydemand.Warning, variable+" by valueFrom"
	if v := env(ray, variable); v == nil {
		i := slices.IndexFunc(ray.EnvFrom,
			func(source corev1.EnvFromSource) bool { return strings.HasPrefix(variable, source.Prefix) })
		if i < 0 {
			return
		}
		severity, seen = raydemand.Info, variable+" perhaps by envFrom"
	} else if v.ValueFrom == nil {
		return
	}
	spec.Report.Add(severity, EnvironmentUnknown, spec.at("headGroupSpec", "template"), seen,
		"Heliostat does not read its value; if it makes the GCS require "+wants+", all calls of Heliostat fail",
		"give "+variable+" as a value in env of the head's Ray container, where it overrides envFrom, or use "+
			"spec.authOptions or spec.tlsOptions")
}

func tokenAuth(spec Fields, name string, ray corev1.Container) nodepool.Auth {
	options := spec.Object("authOptions")
	mode := env(ray, "RAY_AUTH_MODE")
	if options.Text("mode") != "token" && (mode == nil || mode.Value != "token") {
		return nodepool.Auth{}
	}
	auth := nodepool.Auth{Required: true}
	fromPod := env(ray, "RAY_AUTH_TOKEN")
	kubernetes := env(ray, "RAY_ENABLE_K8S_TOKEN_AUTH")
	switch {
	case options.Flag("enableK8sTokenAuth") || kubernetes != nil && strings.EqualFold(kubernetes.Value, "true"):
		auth.KubernetesToken = true
	case fromPod != nil && fromPod.ValueFrom != nil && fromPod.ValueFrom.SecretKeyRef != nil:
		auth.TokenSecret, auth.TokenKey = fromPod.ValueFrom.SecretKeyRef.Name, fromPod.ValueFrom.SecretKeyRef.Key
	case fromPod != nil && fromPod.Value != "":
		auth.Token = fromPod.Value
	case options.Text("secretName") != "":
		auth.TokenSecret, auth.TokenKey = options.Text("secretName"), tokenKey
	case options.Text("mode") == "token":
		auth.TokenSecret, auth.TokenKey = secretNameOf(name), tokenKey
	default:
		spec.Report.Add(raydemand.Error, AuthTokenUnknown, spec.at("headGroupSpec", "template"), "RAY_AUTH_MODE=token",
			"the GCS requires a token, and neither authOptions nor RAY_AUTH_TOKEN of the head's Ray container names "+
				"one",
			"set spec.authOptions.mode: token, or RAY_AUTH_TOKEN from a Secret")
	}
	return auth
}

// secretNameOf returns the operator's name for a cluster's own token Secret (utils.CheckName, v1.6.2): the last 50
// characters, with an r instead of a leading digit or punctuation mark.
func secretNameOf(cluster string) string {
	name := cluster[max(0, len(cluster)-50):]
	if name == "" {
		return name
	}
	if first := rune(name[0]); unicode.IsDigit(first) || unicode.IsPunct(first) {
		return "r" + name[1:]
	}
	return name
}

// tlsSecret returns the Secret with a certificate that the GCS accepts: the worker's of KubeRay's tlsOptions, or the
// one that holds the head's own RAY_TLS_SERVER_CERT.
func tlsSecret(spec Fields, name string, ray corev1.Container, volumes []corev1.Volume) string {
	if spec.Object("tlsOptions").Flag("enabled") {
		return "ray-worker-secret-" + name
	}
	use := env(ray, "RAY_USE_TLS")
	if use == nil || use.Value != "1" && !strings.EqualFold(use.Value, "true") {
		return ""
	}
	if cert := env(ray, "RAY_TLS_SERVER_CERT"); cert != nil {
		for _, mount := range ray.VolumeMounts {
			if !strings.HasPrefix(cert.Value, strings.TrimSuffix(mount.MountPath, "/")+"/") {
				continue
			}
			for _, volume := range volumes {
				if volume.Name == mount.Name && volume.Secret != nil {
					return volume.Secret.SecretName
				}
			}
		}
	}
	spec.Report.Add(raydemand.Error, TLSSecretUnknown, spec.at("headGroupSpec", "template"), "RAY_USE_TLS="+use.Value,
		"the GCS requires mutual TLS, and RAY_TLS_SERVER_CERT is not on a volume from a Secret",
		"mount the certificates from a Secret with tls.crt, tls.key and ca.crt")
	return ""
}

func env(c corev1.Container, name string) *corev1.EnvVar {
	// In Kubernetes, the last of equal names wins.
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == name {
			return &c.Env[i]
		}
	}
	return nil
}
