package devcluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// controlPlane knows how to run each part of one cluster. All parts listen on the cluster's own loopback address.
type controlPlane struct {
	dir   string
	host  string
	ports map[string]int
	pki   *authority
	kit   *kit.Kit
	// env is the environment of every part.
	env []string
	// apiServerEnv is added to the API server's environment. Later values win.
	apiServerEnv []string
	// kueueGates are Kueue's feature gates.
	kueueGates []string
	// audited are users whose requests to the API server are recorded, and auditRules say what else is.
	audited    []string
	auditRules []auditv1.PolicyRule
	// karpenter is whether the cluster has Karpenter.
	karpenter bool
	// gang is whether the scheduler is Coscheduling.
	gang bool
	// simulated is the annotation's value at the nodes that kwok simulates.
	simulated string
}

// usualPorts are the default ports of the parts.
var usualPorts = map[string]int{
	"etcd": 2379, "etcd-peer": 2380, "apiserver": 6443,
	"operator-metrics": 8080, "operator-health": 8082, "kwok": 10247,
	"kueue-webhook": 9443, "kueue-health": 8081, "kueue-metrics": 8443,
}

// publicPorts are ports of parts that listen on all addresses, so no two clusters may share one.
var publicPorts = map[string]int{"karpenter-metrics": 24000, "karpenter-health": 26000}

// newControlPlane chooses the ports and creates keys, certificates and kubeconfigs.
func newControlPlane(c *claim, built *kit.Kit, env []string, options Options) (*controlPlane, error) {
	pki, err := newAuthority(filepath.Join(c.dir, "pki"))
	if err != nil {
		return nil, err
	}
	cp := &controlPlane{
		dir: c.dir, host: c.block.host(), ports: map[string]int{}, pki: pki, kit: built, env: env,
		audited: options.Audit, auditRules: options.AuditRules,
		kueueGates: options.KueueFeatureGates, karpenter: options.karpenter(), simulated: options.simulated(),
		gang:         options.Coscheduling,
		apiServerEnv: append([]string{apiServerMemory}, options.APIServerEnv...),
	}
	for name, usual := range usualPorts {
		if cp.ports[name], err = c.block.port(usual); err != nil {
			return nil, err
		}
	}
	for name, usual := range publicPorts {
		if cp.ports[name], err = c.block.publicPort(usual); err != nil {
			return nil, err
		}
	}
	return cp, cp.makeIdentities()
}

// address returns host:port of one of the ports.
func (cp *controlPlane) address(port string) string {
	return net.JoinHostPort(cp.host, strconv.Itoa(cp.ports[port]))
}

// makeIdentities writes the certificates and kubeconfigs of the parts. The API server binds its built-in roles to these
// user names; installKubeRay binds the operator's role.
func (cp *controlPlane) makeIdentities() error {
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if err := cp.pki.server("apiserver", append([]string{cp.host}, names...)...); err != nil {
		return err
	}
	if err := cp.pki.signingKey("service-account"); err != nil {
		return err
	}
	kubelet, err := cp.pki.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := cp.pki.writeIdentity("kubelet-client", kubelet); err != nil {
		return err
	}
	var schedulers []string
	if cp.gang {
		schedulers = []string{"system:masters"} // the role of kube-scheduler has no PodGroups
	}
	for _, user := range []struct {
		file, name string
		groups     []string
	}{
		{file: cp.kubeconfig(), name: "admin", groups: []string{"system:masters"}},
		{file: cp.kubeconfigOf(Scheduler), name: "system:kube-scheduler", groups: schedulers},
		{file: cp.kubeconfigOf(ControllerManager), name: "system:kube-controller-manager"},
		{file: cp.kubeconfigOf(Operator), name: operatorUser},
		{file: cp.kubeconfigOf(Kwok), name: "kwok", groups: []string{"system:masters"}},
		{file: cp.kubeconfigOf(Kueue), name: "kueue", groups: []string{"system:masters"}},
		{file: cp.kubeconfigOf(Karpenter), name: "karpenter", groups: []string{"system:masters"}},
	} {
		url := "https://" + cp.address("apiserver")
		if err := cp.pki.kubeconfig(user.file, url, user.name, user.groups...); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig is the path of the administrator's kubeconfig.
func (cp *controlPlane) kubeconfig() string { return filepath.Join(cp.dir, "kubeconfig") }

// kubeconfigOf is the path of a part's kubeconfig.
func (cp *controlPlane) kubeconfigOf(part Part) string {
	return cp.pki.path(string(part) + ".kubeconfig")
}

// command returns the command of a part.
func (cp *controlPlane) command(part Part) (command, error) {
	c := command{part: part, program: cp.kit.Bin(part), env: cp.env, dir: cp.dir, log: cp.log(part)}
	switch part {
	case Etcd:
		c.args = cp.etcd()
	case APIServer:
		audit, err := cp.audit()
		if err != nil {
			return command{}, err
		}
		c.args, c.env = append(cp.apiServer(), audit...), append(slices.Clone(cp.env), cp.apiServerEnv...)
	case Scheduler:
		config, err := cp.schedulerConfig()
		if err != nil {
			return command{}, err
		}
		c.args = []string{"--config=" + config, "--secure-port=0"}
		if cp.gang {
			c.program = cp.kit.Bin(Coscheduling)
		}
	case ControllerManager:
		c.args = cp.controllerManager()
	case Operator:
		c.args, c.env = cp.operator(), cp.env
	case Karpenter:
		c.env = append(slices.Clone(cp.env), cp.karpenterEnv()...)
	case Kwok:
		c.args = cp.kwok()
	case Kueue:
		args, err := cp.kueue()
		if err != nil {
			return command{}, err
		}
		c.args = args
	default:
		return command{}, fmt.Errorf("running %s: not a part of a cluster", part)
	}
	return c, nil
}

// log is the path of a part's log.
func (cp *controlPlane) log(part Part) string {
	return filepath.Join(cp.dir, logsDir, string(part)+".log")
}

// schedulerConfig writes the scheduler's configuration. The scheduler ignores the resources that no node of HAMi
// announces: HAMi's chart sets ignoredByScheduler for them, because HAMi's own scheduler counts them.
func (cp *controlPlane) schedulerConfig() (string, error) {
	file := filepath.Join(cp.dir, "scheduler.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {ignoredResources: [nvidia.com/gpumem, nvidia.com/gpumem-percentage, nvidia.com/gpucores]}
`, cp.kubeconfigOf(Scheduler))
	if cp.gang { // the operator's name for it, and manifests/coscheduling/scheduler-config.yaml of scheduler-plugins
		text += `  - {name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  schedulerName: scheduler-plugins-scheduler
`
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	return file, nil
}

// etcd does not sync to disk: no data needs to survive a power failure.
func (cp *controlPlane) etcd() []string {
	client, peer := "http://"+cp.address("etcd"), "http://"+cp.address("etcd-peer")
	return []string{
		"--name=devcluster", "--data-dir=" + filepath.Join(cp.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=devcluster=" + peer,
	}
}

// apiServerMemory lets the API server's heap grow to five times its live size before a garbage collection. With Go's
// default of two times, it spends up to half of its time on that under writes of RayClusters, whose definition is
// large, and all parts share two cores here (measured with make bench NAME=rest).
const apiServerMemory = "GOGC=400"

// apiServer returns the API server's flags. They turn off the taint of new nodes, which only a node lifecycle
// controller removes, and the endpoints of the kubernetes Service, which must not be loopback addresses.
func (cp *controlPlane) apiServer() []string {
	return []string{
		"--etcd-servers=http://" + cp.address("etcd"),
		"--bind-address=" + cp.host, "--advertise-address=" + cp.host,
		"--secure-port=" + strconv.Itoa(cp.ports["apiserver"]),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + cp.pki.path("apiserver.crt"), "--tls-private-key-file=" + cp.pki.path("apiserver.key"),
		"--client-ca-file=" + cp.pki.path("ca.crt"),
		"--kubelet-client-certificate=" + cp.pki.path("kubelet-client.crt"),
		"--kubelet-client-key=" + cp.pki.path("kubelet-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + cp.pki.path("service-account.pub"),
		"--service-account-signing-key-file=" + cp.pki.path("service-account.key"),
		"--authorization-mode=RBAC", "--disable-admission-plugins=TaintNodesByCondition", "--allow-privileged=true",
	}
}

// controllers are those that users rely on: garbage collection, namespaces, service accounts, Jobs, Deployments,
// quotas, claims of devices. Services get no endpoints, because those must not be loopback addresses.
var controllers = []string{
	"garbage-collector-controller", "namespace-controller",
	"serviceaccount-controller", "root-ca-certificate-publisher-controller",
	"job-controller", "deployment-controller", "replicaset-controller",
	"resourcequota-controller", "clusterrole-aggregation-controller", "resourceclaim-controller",
}

// nodeControllers are those that Karpenter relies on: they maintain the conditions and taints of nodes, and delete the
// pods of deleted nodes.
var nodeControllers = []string{
	"node-lifecycle-controller", "taint-eviction-controller", "disruption-controller",
	"pod-garbage-collector-controller",
}

func (cp *controlPlane) controllerManager() []string {
	controllers := slices.Clone(controllers)
	if cp.karpenter {
		controllers = append(controllers, nodeControllers...)
	}
	return []string{
		"--kubeconfig=" + cp.kubeconfigOf(ControllerManager), "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true", "--kube-api-qps=200", "--kube-api-burst=400",
		"--root-ca-file=" + cp.pki.path("ca.crt"),
		"--service-account-private-key-file=" + cp.pki.path("service-account.key"),
		"--controllers=" + strings.Join(controllers, ","),
	}
}

func (cp *controlPlane) operator() []string {
	batch := ""
	if cp.gang {
		batch = "scheduler-plugins"
	}
	return []string{
		"--batch-scheduler=" + batch,
		"--kubeconfig=" + cp.kubeconfigOf(Operator), "--enable-leader-election=false", "--reconcile-concurrency=4",
		"--metrics-addr=" + cp.address("operator-metrics"),
		"--health-probe-bind-address=" + cp.address("operator-health"),
		"--log-stdout-encoder=console",
	}
}

// kwokStages are the life cycles that kwok simulates: nodes become ready, and pods run, at once.
var kwokStages = []string{
	"node/fast/node-initialize.yaml", "node/heartbeat/node-heartbeat.yaml",
	"pod/fast/pod-ready.yaml", "pod/fast/pod-complete.yaml", "pod/fast/pod-delete.yaml",
}

// kwok returns the flags with which kwok manages only nodes with its annotation, and not those of the node agent.
func (cp *controlPlane) kwok() []string {
	args := []string{
		"--kubeconfig=" + cp.kubeconfigOf(Kwok), "--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + kwokAnnotation + "=" + cp.simulated,
		"--cidr=10.244.0.0/16", "--node-ip=" + cp.host, "--server-address=" + cp.address("kwok"),
	}
	for _, stage := range kwokStages {
		args = append(args, "--config="+cp.kit.File(Kwok, filepath.Join("kustomize/stage", stage)))
	}
	return args
}
