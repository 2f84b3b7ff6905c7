package rayobject

import (
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about how the GCS wants to be called.
const (
	AuthTokenUnknown = "auth-token-unknown"
	TLSSecretUnknown = "tls-secret-unknown"
	// KubernetesTokenUnset: the GCS wants a ServiceAccount token, and Options.KubernetesTokenFile names none.
	KubernetesTokenUnset = "kubernetes-token-unset"
)

const tokenKey = "auth_token"

// describeAuth finds out how the GCS wants to be called: from spec.authOptions and spec.tlsOptions, else from the
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

// reportEnvironment tells that a variable by which the GCS would want something more comes, or may come, from where Heliostat does not read. The
// head is called without.
func reportEnvironment(spec Fields, ray corev1.Container, variable, wants string) {
	severity, seen := raydemand.Warning, variable+" by valueFrom"
	if v := env(ray, variable); v == nil {
		i := slices.IndexFunc(ray.EnvFrom, func(source corev1.EnvFromSource) bool { return strings.HasPrefix(variable, source.Prefix) })
		if i < 0 {
			return
		}
		severity, seen = raydemand.Info, variable+" perhaps by envFrom"
	} else if v.ValueFrom == nil {
		return
	}
	spec.Report.Add(severity, EnvironmentUnknown, spec.at("headGroupSpec.template"), seen,
		"its value is not read; where it makes the GCS want "+wants+", no call of Heliostat is answered",
		"give "+variable+" as a value in env of the head's Ray container, where it wins over envFrom, or say it in spec.authOptions or spec.tlsOptions")
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
		spec.Report.Add(raydemand.Error, AuthTokenUnknown, spec.at("headGroupSpec.template"), "RAY_AUTH_MODE=token",
			"the GCS wants a token, and neither authOptions nor RAY_AUTH_TOKEN of the head's Ray container says which",
			"set spec.authOptions.mode: token, or RAY_AUTH_TOKEN from a Secret")
	}
	return auth
}

// secretNameOf is the operator's name for a cluster's own token Secret (utils.CheckName, v1.6.2): the last 50 characters,
// and an r in place of a leading digit or punctuation mark.
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

// tlsSecret names the Secret with a certificate that the GCS accepts: the worker's of KubeRay's tlsOptions, or the one that the
// head's own RAY_TLS_SERVER_CERT is mounted from.
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
	spec.Report.Add(raydemand.Error, TLSSecretUnknown, spec.at("headGroupSpec.template"), "RAY_USE_TLS="+use.Value,
		"the GCS wants mutual TLS, and RAY_TLS_SERVER_CERT does not lie on a volume from a Secret",
		"mount the certificates from a Secret with tls.crt, tls.key and ca.crt")
	return ""
}

func env(c corev1.Container, name string) *corev1.EnvVar {
	// The last of equal names wins in Kubernetes.
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == name {
			return &c.Env[i]
		}
	}
	return nil
}
