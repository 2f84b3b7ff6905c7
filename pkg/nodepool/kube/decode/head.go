package decode

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Names that the KubeRay operator sets (ray-operator/controllers/ray/utils/constant.go).
const (
	ClusterLabel        = "ray.io/cluster"
	nodeTypeLabel       = "ray.io/node-type"
	groupLabel          = "ray.io/group"
	replicaLabel        = "ray.io/worker-group-replica-name"
	headNode            = "head"
	headGroup           = "headgroup"
	workerNode          = "worker"
	gcsPortName         = "gcs-server"
	autoscalerContainer = "autoscaler"
	defaultGCSPort      = 6379
)

// SidecarEnv is a variable on the container named autoscaler. Any value says that Heliostat runs there. An image whose
// name is "heliostat" says the same; the variable is for mirrored images with another name.
const SidecarEnv = "HELIOSTAT_SIDECAR"

// ourImage is the name of Heliostat's image, without its registry, repository and tag.
const ourImage = "heliostat"

// headOf returns the head among the pods. While one head terminates and its successor starts, it prefers the one that
// stays, then the younger one.
func headOf(pods []*Pod) *corev1.Pod {
	var head *corev1.Pod
	for _, p := range pods {
		pod := p.head
		if pod == nil {
			continue
		}
		if head == nil || terminating(head) && !terminating(pod) ||
			terminating(head) == terminating(pod) && head.CreationTimestamp.Before(&pod.CreationTimestamp) {
			head = pod
		}
	}
	return head
}

func terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// describeHead combines the pod with the RayCluster. The pod's own IP comes first: status.head lags behind by one
// reconcile of the operator.
func describeHead(object Fields, shape *landing.PodShape, key nodepool.ClusterKey, pod *corev1.Pod) nodepool.Head {
	status := object.Object("status").Object("head")
	service := cmp.Or(status.Text("serviceName"), key.Name+"-head-svc")
	head := nodepool.Head{
		GCSPort:     gcsPort(object.Object("spec").Object("headGroupSpec"), pod),
		ServiceFQDN: service + "." + key.Namespace + ".svc.cluster.local",
	}
	head.ClosedBy = closedBy(object.silent().Object("spec").Object("networkPolicy"), head.GCSPort)
	if pod == nil {
		return head
	}
	head.Pod, head.PodUID, head.IP, head.Node = pod.Name, string(pod.UID), pod.Status.PodIP, pod.Spec.NodeName
	head.Ready = condition(pod, corev1.PodReady) != nil &&
		condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
	head.Shape = shape
	if pod.Spec.Priority != nil {
		head.Priority = *pod.Spec.Priority
	}
	if ray := rayStatus(pod); ray != nil {
		head.Restarts = ray.RestartCount
	}
	if head.IP == "" && status.Text("podName") == pod.Name {
		head.IP = status.Text("podIP")
	}
	head.Sidecar, head.Guard = sidecar(pod), guardOf(pod)
	return head
}

// gcsPort returns the port of `ray start --head`, else the container port of that name, else Ray's default.
func gcsPort(head Fields, pod *corev1.Pod) int32 {
	if port, err := strconv.ParseUint(head.Texts("rayStartParams")["port"], 10, 16); err == nil && port > 0 {
		return int32(port)
	}
	if pod != nil && len(pod.Spec.Containers) > 0 {
		for _, port := range pod.Spec.Containers[0].Ports {
			if port.Name == gcsPortName && port.ContainerPort > 0 {
				return port.ContainerPort
			}
		}
	}
	return defaultGCSPort
}

// closedBy says why a network policy of KubeRay 1.7 lets only pods of the RayCluster call the GCS; empty if others may
// (networkpolicy_controller.go, v1.7.0). A rule for the port counts as open, because its peers can be anybody.
func closedBy(policy Fields, gcs int32) string {
	mode := cmp.Or(policy.Text("mode"), "DenyAll") // the CRD's default
	if policy.Raw() == nil || mode == "DenyAllEgress" {
		return ""
	}
	for _, rule := range policy.Object("head").Objects("ingressRules") {
		ports := rule.Objects("ports")
		if len(ports) == 0 || slices.ContainsFunc(ports, func(p Fields) bool {
			first, isNumber := p.Get("port").Whole()
			last, _ := p.Get("endPort").Whole()
			return cmp.Or(p.Text("protocol"), "TCP") == "TCP" &&
				(!isNumber || first <= int64(gcs) && int64(gcs) <= max(first, last))
		}) {
			return ""
		}
	}
	return fmt.Sprintf("spec.networkPolicy (%s) lets only pods of the RayCluster call port %d of the head", mode, gcs)
}

// sidecar reads the head pod's containers instead of the spec: after enableInTreeAutoscaling changed, the two disagree,
// in both directions, until the operator recreates the head pod (docs/reference/facts.md#sidecar-after-a-toggle). A
// container that waits or crashes will come back, so it counts as alive; one that ended in a pod that never restarts
// does not.
func sidecar(pod *corev1.Pod) nodepool.Autoscaler {
	for _, c := range pod.Spec.Containers {
		if c.Name != autoscalerContainer || ended(pod, c.Name) {
			continue
		}
		if scaler := AutoscalerIn(c); scaler != nodepool.NoAutoscaler {
			return scaler
		}
	}
	return nodepool.NoAutoscaler
}

// AutoscalerIn returns which autoscaler a container named autoscaler runs. Only a command that certainly does nothing,
// or Heliostat's own image, is not taken for Ray's own or an unknown one.
func AutoscalerIn(c corev1.Container) nodepool.Autoscaler {
	words := append(append([]string{}, c.Command...), c.Args...)
	starts := len(words) == 0 || strings.Contains(strings.Join(words, " "), "kuberay-autoscaler")
	switch {
	case starts && (imageName(c.Image) == ourImage || env(c, SidecarEnv) != nil):
		return nodepool.OurSidecar
	case starts && !strings.Contains(c.Image, ourImage):
		return nodepool.RaySidecar
	case starts || !idleCommand.MatchString(strings.Join(words, " ")):
		return nodepool.UnknownSidecar
	}
	return nodepool.NoAutoscaler
}

// imageName returns the last part of a reference's path, without tag and digest.
func imageName(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	name, _, _ := strings.Cut(path.Base(reference), ":")
	return name
}

// idleCommand matches commands that only wait, as they are or as the script of a shell: they certainly scale nothing.
var idleCommand = regexp.MustCompile(
	`^((/bin/|/usr/bin/)?(ba|da)?sh -[a-z]*c (-- )?)?(exec )?` +
		`((/bin/|/usr/bin/)?sleep (infinity|[0-9]+[smhd]?)|/?pause|(/bin/|/usr/bin/)?tail -f /dev/null)$`)

func ended(pod *corev1.Pod, name string) bool {
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return false
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status.State.Terminated != nil
		}
	}
	return false
}

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
	return auth
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
