package decode

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func withSidecar(image string, args []string, state corev1.ContainerState, env ...corev1.EnvVar) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: autoscalerContainer, Image: image, Command: []string{"/bin/bash", "-c", "--"}, Args: args, Env: env,
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: autoscalerContainer, State: state})
	}
}

// withCommand adds a container with the command of autoscalerOptions.command, which KubeRay has from 1.7 on.
func withCommand(image string, command ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: autoscalerContainer, Image: image, Command: command})
	}
}

// The sidecar is seen in the pod, stripped or not, and never in the spec.
func TestTheSidecarIsSeenInTheHeadPod(t *testing.T) {
	usual := []string{"ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	tests := []struct {
		name string
		head *corev1.Pod
		want nodepool.Autoscaler
	}{
		{"no second container", pod("h", headNode, "headgroup"), nodepool.NoAutoscaler},
		{"Ray's own", pod("h", headNode, "headgroup", withSidecar("rayproject/ray:2.60.0", usual, running)), nodepool.RaySidecar},
		{"Ray's own that crashes and comes back", pod("h", headNode, "headgroup", withSidecar("rayproject/ray:2.60.0", usual, waiting)), nodepool.RaySidecar},
		{"Ray's own that ended for good", pod("h", headNode, "headgroup", neverRestarts, withSidecar("rayproject/ray:2.60.0", usual, ended)), nodepool.NoAutoscaler},
		{"Ray's own that ended and restarts", pod("h", headNode, "headgroup", withSidecar("rayproject/ray:2.60.0", usual, ended)), nodepool.RaySidecar},
		{"put to sleep by its arguments", pod("h", headNode, "headgroup", withSidecar("rayproject/ray:2.60.0", []string{"sleep infinity"}, running)), nodepool.NoAutoscaler},
		{"put to sleep by KubeRay 1.7", pod("h", headNode, "headgroup", withCommand("busybox", "sleep", "infinity")), nodepool.NoAutoscaler},
		{"put to sleep with the arguments that KubeRay 1.7 keeps", pod("h", headNode, "headgroup", withCommand("busybox", append([]string{"sleep", "infinity"}, usual...)...)), nodepool.RaySidecar},
		{"put to sleep in a shell", pod("h", headNode, "headgroup", withCommand("busybox:1", "/bin/sh", "-c", "exec sleep 1d")), nodepool.NoAutoscaler},
		{"the pause image", pod("h", headNode, "headgroup", withCommand("registry.k8s.io/pause:3.10", "/pause")), nodepool.NoAutoscaler},
		{"our image put to sleep", pod("h", headNode, "headgroup", withCommand("x/heliostat:1", "sleep", "infinity")), nodepool.NoAutoscaler},
		{"a script of the user", pod("h", headNode, "headgroup", withCommand("rayproject/ray:2.60.0", "/opt/start.sh")), nodepool.UnknownSidecar},
		{"sleep and then more", pod("h", headNode, "headgroup", withCommand("rayproject/ray:2.60.0", "bash", "-c", "sleep 10; python -m monitor")), nodepool.UnknownSidecar},
		{"Ray's own module", pod("h", headNode, "headgroup", withCommand("rayproject/ray:2.60.0", "python", "-m", "ray.autoscaler.v2.monitor")), nodepool.UnknownSidecar},
		{"our image with another command", pod("h", headNode, "headgroup", withCommand("x/heliostat:1", "autoscaler", "serve")), nodepool.UnknownSidecar},
		{"our image and command by KubeRay 1.7", pod("h", headNode, "headgroup", withCommand("x/heliostat:1", "ray", "kuberay-autoscaler")), nodepool.OurSidecar},
		{"ours by its image", pod("h", headNode, "headgroup", withSidecar("ghcr.io/heliostat/heliostat:1", usual, running)), nodepool.OurSidecar},
		{"ours by its image and digest", pod("h", headNode, "headgroup", withSidecar("r:5000/heliostat@sha256:ab", usual, running)), nodepool.OurSidecar},
		{"Ray's in a project of our name", pod("h", headNode, "headgroup", withSidecar("r/heliostat/ray:2.60.0", usual, running)), nodepool.UnknownSidecar},
		{"ours by its variable", pod("h", headNode, "headgroup", withSidecar("mirror/scaler:1", usual, running, corev1.EnvVar{Name: SidecarEnv, Value: "1"})), nodepool.OurSidecar},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Join(Decoded{}, kept(test.head)).Head.Sidecar; got != test.want {
				t.Errorf("sidecar is %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheHeadIsTheOneThatStays(t *testing.T) {
	deleted := moment(9)
	old := pod("old", headNode, "headgroup", func(p *corev1.Pod) { p.DeletionTimestamp = &deleted; p.CreationTimestamp = moment(8) })
	young := pod("young", headNode, "headgroup", rayState(corev1.ContainerState{}, 2), func(p *corev1.Pod) {
		p.CreationTimestamp, p.Status.PodIP = moment(5), "10.0.0.7"
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6390}}
	})
	older := pod("older", headNode, "headgroup")
	want := nodepool.Head{Pod: "young", PodUID: "uid-1", Restarts: 2, IP: "10.0.0.7", GCSPort: 6390, ServiceFQDN: "-head-svc..svc.cluster.local"}
	for _, pods := range [][]*corev1.Pod{{old, young, older}, {older, young, old}, {young, old, older}} {
		if diff := cmp.Diff(want, Join(Decoded{}, kept(pods...)).Head); diff != "" {
			t.Errorf("head (-want +got):\n%s", diff)
		}
	}
}

func TestAuthSaysHowTheGCSWantsToBeCalled(t *testing.T) {
	env := func(vars ...corev1.EnvVar) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Env = vars }
	}
	mode := corev1.EnvVar{Name: "RAY_AUTH_MODE", Value: "token"}
	fromSecret := corev1.EnvVar{Name: "RAY_AUTH_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, Key: "k",
	}}}
	options := func(values map[string]any) map[string]any { return map[string]any{"authOptions": values} }
	tests := []struct {
		name    string
		spec    map[string]any
		head    *corev1.Pod
		want    nodepool.Auth
		finding string
	}{
		{name: "none", head: pod("h", headNode, "")},
		{name: "the operator's own Secret, before the head exists", spec: options(map[string]any{"mode": "token"}),
			want: nodepool.Auth{Required: true, TokenSecret: "llm", TokenKey: "auth_token"}},
		{name: "a named Secret", spec: options(map[string]any{"mode": "token", "secretName": "s"}),
			want: nodepool.Auth{Required: true, TokenSecret: "s", TokenKey: "auth_token"}},
		{name: "the API server is asked", spec: options(map[string]any{"mode": "token", "enableK8sTokenAuth": true}),
			want: nodepool.Auth{Required: true, KubernetesToken: true}},
		{name: "by hand from a Secret", head: pod("h", headNode, "", env(mode, fromSecret)),
			want: nodepool.Auth{Required: true, TokenSecret: "mine", TokenKey: "k"}},
		{name: "by hand as a literal", head: pod("h", headNode, "", env(mode, corev1.EnvVar{Name: "RAY_AUTH_TOKEN", Value: "t"})),
			want: nodepool.Auth{Required: true, Token: "t"}},
		{name: "by hand without a token", head: pod("h", headNode, "", env(mode)), want: nodepool.Auth{Required: true}, finding: AuthTokenUnknown},
		{name: "KubeRay's TLS", spec: map[string]any{"tlsOptions": map[string]any{"enabled": true}}, want: nodepool.Auth{TLSSecret: "ray-worker-secret-llm"}},
		{name: "TLS by hand", head: pod("h", headNode, "", env(
			corev1.EnvVar{Name: "RAY_USE_TLS", Value: "1"}, corev1.EnvVar{Name: "RAY_TLS_SERVER_CERT", Value: "/tls/tls.crt"}),
			func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/tls"}}
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "certs"}}}}
			}), want: nodepool.Auth{TLSSecret: "certs"}},
		{name: "TLS from nowhere", head: pod("h", headNode, "", env(corev1.EnvVar{Name: "RAY_USE_TLS", Value: "1"})), finding: TLSSecretUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "llm"}, "spec": test.spec}}
			var pods []*Pod
			if test.head != nil {
				pods = kept(test.head)
			}
			cluster := joined(object, pods)
			if diff := cmp.Diff(test.want, cluster.Auth); diff != "" {
				t.Errorf("auth (-want +got):\n%s", diff)
			}
			found := false
			for _, f := range cluster.Findings {
				found = found || f.Code == test.finding
			}
			if test.finding != "" && !found {
				t.Errorf("findings %v lack %s", cluster.Findings, test.finding)
			}
		})
	}
}

// The policies are those of the operator's buildHeadNetworkPolicy (v1.7.0): its own rule admits pods of the RayCluster.
func TestANetworkPolicyClosesTheGCSUnlessARuleOfTheHeadNamesItsPort(t *testing.T) {
	const deny = "spec.networkPolicy (%s) lets only pods of the RayCluster call port %s of the head"
	for policy, want := range map[string]string{
		`null`:                       "",
		`{}`:                         fmt.Sprintf(deny, "DenyAll", "6379"),
		`{"mode": "DenyAllIngress"}`: fmt.Sprintf(deny, "DenyAllIngress", "6379"),
		`{"mode": "DenyAllEgress"}`:  "",
		`{"head": {"ingressRules": []}, "worker": {"ingressRules": [{}]}}`:                       fmt.Sprintf(deny, "DenyAll", "6379"),
		`{"head": {"ingressRules": [{"ports": [{"port": 8265}]}, {"ports": [{"port": 6379}]}]}}`: "",
		`{"head": {"ingressRules": [{"ports": [{"port": 6379, "protocol": "UDP"}]}]}}`:           fmt.Sprintf(deny, "DenyAll", "6379"),
		`{"head": {"ingressRules": [{"ports": [{"port": 6000, "endPort": 6400}]}]}}`:             "",
		`{"head": {"ingressRules": [{"ports": [{"port": 6000, "endPort": 6300}]}]}}`:             fmt.Sprintf(deny, "DenyAll", "6379"),
		`{"head": {"ingressRules": [{"ports": [{"port": "gcs-server"}]}]}}`:                      "",
		`{"head": {"ingressRules": [{"from": [{"podSelector": {}}]}]}}`:                          "",
		`{"head": {"ingressRules": [{"ports": [{"port": 10001}]}]}}`:                             fmt.Sprintf(deny, "DenyAll", "6379"),
	} {
		var fields any
		must(t, json.Unmarshal([]byte(policy), &fields))
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"networkPolicy": fields}}}
		if got := joined(object, nil).Head.ClosedBy; got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
}

func TestIdleTerminationIsReportedWhereRaysAutoscalerDoesNotScale(t *testing.T) {
	usual := []string{"ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME)"}
	rays := pod("h", headNode, "headgroup", withSidecar("rayproject/ray:2.60.0", usual, corev1.ContainerState{}))
	ours := pod("h", headNode, "headgroup", withSidecar("x/heliostat:1", usual, corev1.ContainerState{}))
	managed := map[string]any{"annotations": map[string]any{ModeAnnotation: "managed"}}
	for _, test := range []struct {
		name, spec string
		metadata   map[string]any
		head       *corev1.Pod
		want       []string
	}{
		{name: "nobody scales", spec: `{"idleTerminationOptions": {"timeoutSeconds": 60}}`, want: []string{"spec.idleTerminationOptions"}},
		{name: "Ray will scale", spec: `{"enableInTreeAutoscaling": true, "idleTerminationOptions": {}}`},
		{name: "the fleet will", spec: `{"enableInTreeAutoscaling": true, "autoscalerOptions": {"noDriverTimeoutSeconds": 60}}`, metadata: managed,
			want: []string{"spec.autoscalerOptions.noDriverTimeoutSeconds"}},
		{name: "Ray scales", spec: `{"idleTerminationOptions": {}}`, metadata: managed, head: rays},
		{name: "our sidecar", spec: `{"enableInTreeAutoscaling": true, "idleTerminationOptions": {}}`, head: ours, want: []string{"spec.idleTerminationOptions"}},
	} {
		var spec map[string]any
		must(t, json.Unmarshal([]byte(test.spec), &spec))
		var pods []*Pod
		if test.head != nil {
			pods = kept(test.head)
		}
		var got []string
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": test.metadata, "spec": spec}}
		for _, f := range joined(object, pods).Findings {
			if f.Code == IdleTerminationUnexecuted {
				got = append(got, f.Field)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"idleSuspend": true}}}
	if cluster := joined(object, nil); !cluster.Suspended {
		t.Error("a RayCluster that Ray's autoscaler has suspended counts as awake")
	}
}

// The amounts are those of BuildCollectorContainer (v1.7.0).
func TestTheHistoryServersCollectorCountsInAllPods(t *testing.T) {
	const one = `{template: {spec: {containers: [{name: ray, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}}`
	for options, want := range map[string]landing.Quantities{
		`{}`:                             {"cpu": raydemand.One, "memory": raydemand.Whole(1 << 30)},
		`{collectorOptions: {image: c}}`: {"cpu": raydemand.One * 105 / 100, "memory": raydemand.Whole(1<<30 + 64<<20)},
		`{collectorOptions: {image: c, resources: {limits: {cpu: 1}, requests: {memory: 1Gi}}}}`: {
			"cpu": 2 * raydemand.One, "memory": raydemand.Whole(2 << 30)},
	} {
		object := &unstructured.Unstructured{Object: objectOf(t, `{spec: {historyServerOptions: `+options+`, headGroupSpec: `+one+`, workerGroupSpecs: [`+one+`]}}`)}
		cluster := joined(object, kept(pod("h", headNode, "headgroup")))
		for where, got := range map[string]landing.Quantities{
			"the head's group": HeadGroup(sharing.Reader{}, object).Pod.Requests, "the head": cluster.Head.Shape.Requests,
			"a worker": cluster.Groups[0].Pod.Requests,
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", where, options, diff)
			}
		}
	}
}

// utils.CheckName of the operator: the last 50 characters, and an r in place of a leading digit or punctuation mark.
func TestTheTokenSecretIsNamedLikeTheOperatorDoes(t *testing.T) {
	for cluster, want := range map[string]string{
		"llm": "llm",
		"a1234567890123456789012345678901234567890123456789x":      "r234567890123456789012345678901234567890123456789x",
		"a-" + "2345678901234567890123456789012345678901234567890": "r2345678901234567890123456789012345678901234567890",
	} {
		if got := secretNameOf(cluster); got != want {
			t.Errorf("Secret of %s is %s, want %s", cluster, got, want)
		}
	}
}

func TestTheHeadsPriorityStandsForItsRayCluster(t *testing.T) {
	head, value := pod("h", headNode, "headgroup"), int32(1000)
	head.Spec.Priority = &value
	if got := Join(Decoded{}, kept(head)).Head.Priority; got != value {
		t.Errorf("priority %d, want %d", got, value)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
