package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const dir = "../../deploy/chart"

func loaded(t *testing.T) *helm.Chart {
	t.Helper()
	c, err := Load(dir)
	must(t, err)
	return c
}

// valuesOf parses values as a user writes them.
func valuesOf(t *testing.T, text string) Values {
	t.Helper()
	values := Values{}
	must(t, yaml.UnmarshalStrict([]byte(text), &values))
	return values
}

// home is the release of most tests.
var home = Release{Name: "heliostat", Namespace: "heliostat"}

// render renders the chart for a release with values as a user writes them.
func render(t *testing.T, release Release, values string) (manifests []Manifest, notes string) {
	t.Helper()
	manifests, notes, err := Render(loaded(t), release, valuesOf(t, values))
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return manifests, notes
}

// installs are the most different ways to install the chart.
var installs = map[string]string{
	"as it comes": ``,
	"one namespace": `
singleNamespaceInstall: true
`,
	"a few namespaces": `
singleNamespaceInstall: true
watchNamespace: [ml, research]
`,
	"nothing without a namespace": `
singleNamespaceInstall: true
clusterScopedRbacEnable: false
aggregatedRoles: {enabled: false}
api: {exposure: loopback}
`,
	"everything off": `
replicas: 1
leaderElectionEnabled: false
rbacEnable: false
aggregatedRoles: {enabled: false}
serviceAccount: {create: false}
rayClusterSecretsRbacEnable: false
api: {exposure: none}
metrics: {enabled: false}
podDisruptionBudget: {enabled: false}
resources: {}
podSecurityContext: {}
securityContext: {}
topologySpreadConstraints: []
`,
	"everything on": `
nameOverride: suns
fullnameOverride: the-heliostat
commonLabels: {team: platform}
image: {tag: v9, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always}
imagePullSecrets: [{name: pull}]
replicas: 3
mode: managed
watchNamespace: [ml]
serviceAccount: {name: sun, annotations: {example.com/role: scaler}}
protectBusy: true
provisioningRequests: true
warmNodes: true
pools:
  pools: [{name: a100, minNodes: 0, maxNodes: 8}]
  instanceTypes: {p4d.24xlarge: 32.77}
  spot: {p4d.24xlarge: 20.1}
  currency: EUR
topologyLabels: {nvidia.com/gpu.clique: ray.io/gpu-domain}
config: {max-in-flight: 100, kube-api-qps: 12.5, resource: [example.com/a=mps, example.com/b=mps]}
extraArgs: [--max-in-flight=200]
env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://collector:4317"}]
envFrom: [{configMapRef: {name: more, optional: true}}]
logging: {format: text, level: debug}
api:
  tokenAudiences: [heliostat]
  service: {type: LoadBalancer, annotations: {example.com/internal: "true"}}
  tls: {dnsNames: [heliostat.example.com]}
metrics:
  service: {annotations: {prometheus.io/scrape: "true"}}
  serviceMonitor: {enabled: true, namespace: monitoring, interval: 15s, scrapeTimeout: 10s, additionalLabels: {release: prometheus}, relabelings: [{action: labeldrop, regex: pod}], metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: go_.*}]}
  prometheusRule: {enabled: true, namespace: monitoring, additionalLabels: {release: prometheus}}
dashboards: {enabled: true, namespace: monitoring}
networkPolicy:
  enabled: true
  apiFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ml}}}]
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  egress: {enabled: true, apiServerCIDRs: [10.96.0.1/32], extra: [{ports: [{port: 4317}]}]}
podLabels: {sidecar.istio.io/inject: "false"}
podAnnotations: {example.com/a: b}
labels: {example.com/c: d}
annotations: {example.com/e: f}
priorityClassName: system-cluster-critical
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}]}}}
updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
agent: {enabled: true, runtimeClassName: "", priorityClassName: system-node-critical}
`,
	"a certificate of cert-manager's own issuer": `
api: {tls: {source: certManager}}
metrics: {serviceMonitor: {enabled: true, interval: 30s}}
`,
	"a certificate of an issuer": `
api: {tls: {source: certManager, certManager: {issuerRef: {name: corporate, kind: ClusterIssuer}}}}
`,
	"a certificate that is there": `
api: {tls: {source: existingSecret, existingSecret: corporate}}
agent: {enabled: true, mig: false}
`,
	"the network policy for one namespace": `
singleNamespaceInstall: true
networkPolicy: {enabled: true, egress: {enabled: true}}
`,
}

// TestNotesSayHowToReachThisInstall checks the commands that depend on values: which Leases there are, and the Service.
func TestNotesSayHowToReachThisInstall(t *testing.T) {
	elsewhere := Release{Name: "sun", Namespace: "space"}
	for _, c := range []struct {
		release      Release
		values       string
		want, unlike string
	}{
		{home, ``, "get lease heliostat\n", "--service"},
		{home, `shardsEnabled: true`, "get leases -l heliostat.dev/shards\n", "get lease "},
		{elsewhere, `api: {port: 8443}`, " --service space/https:sun-heliostat:8443\n", ""},
		{home, `{replicas: 1, api: {exposure: loopback}}`, "port-forward deployment/heliostat 8090\n", "--token-file"},
	} {
		_, notes := render(t, c.release, c.values)
		if !strings.Contains(notes, c.want) || c.unlike != "" && strings.Contains(notes, c.unlike) {
			t.Errorf("%s: want %q and not %q in\n%s", c.values, c.want, c.unlike, notes)
		}
	}
}

// TestAlertsLeadToTheRunbooksOfTheInstall checks that a value replaces the address of all runbooks.
func TestAlertsLeadToTheRunbooksOfTheInstall(t *testing.T) {
	manifests, _ := render(t, home, `metrics: {prometheusRule: {enabled: true, runbookURL: "https://wiki.corp/ray"}}`)
	links := 0
	for _, m := range of(manifests, "prometheusrule.yaml") {
		for line := range strings.Lines(m.Text) {
			if _, link, found := strings.Cut(line, "runbook_url: "); found {
				links++
				if !strings.HasPrefix(link, "https://wiki.corp/ray/") {
					t.Errorf("an alert leads to %s", link)
				}
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d alerts have a runbook", links)
	}
}

func TestHelmLintFindsNothing(t *testing.T) {
	for name, text := range installs {
		result := lint.AllWithKubeVersion(dir, valuesOf(t, text), "heliostat", nil)
		for _, m := range result.Messages {
			// Only catalogs show an icon.
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct{ name, values, says string }{
		{"a misspelt value", `replica: 2`, "replica"},
		{"a misspelt value below another", `api: {expose: network}`, "expose"},
		{"an unknown mode", `mode: manage`, "mode"},
		{"a namespace in capitals", `watchNamespace: [ML]`, "watchNamespace"},
		{"a port that is none", `api: {port: 70000}`, "port"},
		{"a digest without its kind", `image: {digest: abc}`, "digest"},
		{"several pods that all decide", `{replicas: 2, leaderElectionEnabled: false}`, "would all decide"},
		{"shards without leases", `{replicas: 1, shardsEnabled: true, leaderElectionEnabled: false}`, "shards have Leases"},
		{"shards on loopback", `{shardsEnabled: true, api: {exposure: loopback}}`, "must not be loopback"},
		{"a value that was removed", `keepCosts: false`, "keepCosts was removed; sum the counter heliostat_cost_total"},
		{"a monitor that was removed", `metrics: {podMonitor: {enabled: true}}`, "metrics.podMonitor was removed; use metrics.serviceMonitor"},
		{"an authority that was removed", `api: {tls: {clientCA: pki}}`, "api.tls.clientCA was removed; callers send a token"},
		{"two ports that are one", `api: {port: 8080}`, "want different ports"},
		{"a name that is none", `nameOverride: UPPER_CASE`, "nameOverride"},
		{"a name that is a number", `fullnameOverride: "123"`, "fullnameOverride"},
		{"a label with blanks", `commonLabels: {team: "a b"}`, "commonLabels"},
		{"a label of two lines", `commonLabels: {team: "a\nb"}`, "commonLabels"},
		{"an image with blanks", `image: {repository: "a b"}`, "repository"},
		{"a variable that is a number", `env: [{name: A, value: 1}]`, "env"},
		{"a value that was removed", `networkPolicy: {egress: {dashboardPort: 8265}}`, "networkPolicy.egress.dashboardPort was removed; Heliostat calls"},
		{"a setting that was removed", `config: {surge: one}`, "config.surge was removed; give maxReplicas room"},
		{"a setting that is a value", `config: {log-level: debug}`, "config.log-level: overrides what the chart sets; set logging.level instead"},
		{"the same in one word", `config: {logLevel: debug}`, "set logging.level"},
		{"a flag that is a value", `extraArgs: [--mode=shadow]`, "extraArgs: --mode=shadow: overrides what the chart sets; set mode instead"},
		{"a removed value", `forecast: "off"`, "forecast was removed; use schedules of a capacity policy, or a longer idle timeout"},
		{"a removed value", `requestMemory: 64Mi`, "requestMemory was removed; the CRD bounds a ResourceRequest"},
		{"a setting that is no name", `config: {"log level": debug}`, "log level"},
		{"an address of runbooks that is none", `metrics: {prometheusRule: {runbookURL: runbooks}}`, "runbookURL"},
		{"a Secret that has no name", `api: {tls: {source: existingSecret}}`, "existingSecret"},
	} {
		_, _, err := Render(loaded(t), home, valuesOf(t, c.values))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.says)
		}
	}
}

// TestPodsOfAllNamespacesAreOnlyReadWhereTheyMayBe checks which installs grant list and watch on pods by a ClusterRole:
// a fleet for all namespaces, and one for a few only if a value says so.
func TestPodsOfAllNamespacesAreOnlyReadWhereTheyMayBe(t *testing.T) {
	for values, want := range map[string]bool{
		``:                               true,
		`{singleNamespaceInstall: true}`: false,
		`{singleNamespaceInstall: true, allPodsRbacEnable: true}`:                                 true,
		`{singleNamespaceInstall: true, allPodsRbacEnable: true, clusterScopedRbacEnable: false}`: false,
	} {
		rights := rightsOf(t, values, "ClusterRole")
		for _, resource := range []string{"pods", "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io",
			"deviceclasses.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"} {
			if rights[right{"list", resource, ""}] != want || rights[right{"watch", resource, ""}] != want {
				t.Errorf("%s: a ClusterRole grants %s: %t, want %t", values, resource, !want, want)
			}
		}
	}
}

// rightsOf returns what the roles of an install grant, those of a kind or of both.
func rightsOf(t *testing.T, values, kind string) map[right]bool {
	t.Helper()
	manifests, _ := render(t, home, values)
	rights := map[right]bool{}
	for _, m := range of(manifests, "rbac.yaml") {
		for document := range strings.SplitSeq(m.Text, "\n---\n") {
			role := rbacv1.ClusterRole{} // a Role has the same rules
			must(t, yaml.Unmarshal([]byte(document), &role))
			if kind == "" || role.Kind == kind {
				expand(rights, role.Rules, "")
			}
		}
	}
	return rights
}

// TestRightsAndFlagsFollowTheirValue checks which installs grant what a value needs, and that its flag goes with it.
func TestRightsAndFlagsFollowTheirValue(t *testing.T) {
	const requests, buffers = "provisioningrequests.autoscaling.x-k8s.io", "capacitybuffers.autoscaling.x-k8s.io"
	for _, c := range []struct {
		value, flag          string
		needs, always, never []right // with the value; in all installs that have it; in none
	}{
		{"protectBusy", "protect-busy", []right{{"patch", "pods", ""}}, nil,
			[]right{{"create", "pods", ""}, {"delete", "pods", ""}, {"update", "pods", ""}}},
		{"provisioningRequests", "provisioning-requests", []right{{"create", requests, ""}, {"delete", requests, ""},
			{"watch", requests, ""}, {"create", "podtemplates", ""}, {"delete", "podtemplates", ""}}, []right{{"patch", "pods", ""}}, nil},
		{"warmNodes", "warm-nodes", []right{{"get", buffers, ""}, {"create", buffers, ""}, {"patch", buffers, ""},
			{"delete", buffers, ""}, {"get", "podtemplates", ""}, {"create", "podtemplates", ""}, {"patch", "podtemplates", ""},
			{"delete", "podtemplates", ""}}, nil, nil},
	} {
		for values, on := range map[string]bool{
			`{}`: false, `{singleNamespaceInstall: true}`: false, `{protectBusy: true}`: c.value == "protectBusy",
			`{` + c.value + `: true}`: true, `{singleNamespaceInstall: true, ` + c.value + `: true}`: true,
		} {
			rights := rightsOf(t, values, "")
			for _, needed := range c.needs {
				if rights[needed] != on {
					t.Errorf("%s: grants %v: %t, want %t", values, needed, !on, on)
				}
			}
			for _, granted := range c.always {
				if on && !rights[granted] {
					t.Errorf("%s: does not grant %v", values, granted)
				}
			}
			for _, refused := range c.never {
				if rights[refused] {
					t.Errorf("%s: grants %v", values, refused)
				}
			}
			args := deploymentOf(t, values).Spec.Template.Spec.Containers[0].Args
			if c.flag != "" && !slices.Contains(args, fmt.Sprintf("--%s=%t", c.flag, on)) {
				t.Errorf("%s: args %v", values, args)
			}
		}
	}
}

// TestSettingsThatOtherValuesMakeAreRefused checks settings that the chart derives from a value. Users must not set
// them in any other way, because that would win and leave ports, volumes and rights unchanged.
func TestSettingsThatOtherValuesMakeAreRefused(t *testing.T) {
	for name, text := range installs {
		for _, arg := range deploymentOf(t, text).Spec.Template.Spec.Containers[0].Args[1:] {
			flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if slices.Contains([]string{"max-in-flight", "kube-api-qps", "resource"}, flag) {
				continue // extra settings of the install itself
			}
			variable := "HELIOSTAT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
			for says, values := range map[string]Values{
				"config." + flag + ": overrides":         {"config": Values{flag: "x"}},
				"extraArgs: --" + flag + "=x: overrides": {"extraArgs": []any{"--max-in-flight=200", "--" + flag + "=x"}},
				"extraArgs: --" + flag + ": overrides":   {"extraArgs": []any{"--" + flag}},
				"env: " + variable + ": overrides":       {"env": []any{Values{"name": "GOGC", "value": "70"}, Values{"name": variable, "value": "x"}}},
			} {
				if _, _, err := Render(loaded(t), home, values); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: got %v, want an error with %q", name, err, says)
				}
			}
		}
	}
}

// TestSettingsThatNoOtherValueMakesAreTaken checks that users may set environment variables of other programs, and any
// other flag in every possible way.
func TestSettingsThatNoOtherValueMakesAreTaken(t *testing.T) {
	for _, values := range []string{
		`config: {max-in-flight: 200}`, `config: {read-only: true}`, `extraArgs: ["--max-in-flight=200", "--pprof-bind-address=localhost:6060"]`,
		`env: [{name: HELIOSTAT_MAX_IN_FLIGHT, value: "200"}, {name: MODE, value: x}, {name: POOLS, value: x}]`,
	} {
		render(t, home, values)
	}
}

// deploymentOf returns the Deployment that the chart renders with the given values.
func deploymentOf(t *testing.T, values string) appsv1.Deployment {
	t.Helper()
	manifests, _ := render(t, home, values)
	var deployment appsv1.Deployment
	for _, m := range of(manifests, "deployment.yaml") {
		must(t, yaml.UnmarshalStrict([]byte(m.Text), &deployment))
	}
	return deployment
}

// Without leader election the old pod ends before the new one begins. A pod that Services lead to goes on for 3 s, until
// they have forgotten it.
func TestTheDeploymentFollowsItsValues(t *testing.T) {
	for values, want := range map[string]string{
		`{}`:                                 "RollingUpdate, leader election true, shards false, may patch Leases false, goes on for 3 s",
		`{replicas: 5, shardsEnabled: true}`: "RollingUpdate, leader election false, shards true, may patch Leases true, goes on for 3 s",
		`{replicas: 1, leaderElectionEnabled: false}`: "Recreate, leader election false, shards false, may patch Leases false, goes on for 3 s",
		`{api: {exposure: loopback}}`:                 "RollingUpdate, leader election true, shards false, may patch Leases false, goes on for 0 s",
		`{api: {exposure: none}}`:                     "RollingUpdate, leader election true, shards false, may patch Leases false, goes on for 0 s",
	} {
		spec := deploymentOf(t, values).Spec
		container, pause := spec.Template.Spec.Containers[0], int64(0)
		if container.Lifecycle != nil {
			pause = container.Lifecycle.PreStop.Sleep.Seconds
		}
		got := fmt.Sprintf("%s, leader election %t, shards %t, may patch Leases %t, goes on for %d s", spec.Strategy.Type,
			slices.Contains(container.Args, "--leader-elect"), slices.Contains(container.Args, "--shards"),
			rightsOf(t, values, "Role")[right{"patch", "leases.coordination.k8s.io", ""}], pause)
		if got != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
}

func TestNamesThatYAMLReadsAsSomethingElseStayNames(t *testing.T) {
	for _, name := range []string{"n", "on", "no", "123", "1e3", "null"} {
		manifests, _ := render(t, Release{Name: name, Namespace: name}, "")
		for _, m := range manifests {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(m.Text), &object); err != nil {
				t.Errorf("%s in namespace %s: %v", m.Template, name, err)
			}
			if got := object.Labels["app.kubernetes.io/instance"]; got != "" && got != name {
				t.Errorf("%s: the release %s is %q", m.Template, name, got)
			}
		}
	}
}

func TestTheTableOfValuesLeavesOutNothing(t *testing.T) {
	for _, c := range []struct{ name, values, says string }{
		{"a value without comment", "a: 1\n", "a has no comment"},
		{"one below another", "a:\n  # -- What b is.\n  b: 1\n  c: {}\n", "a.c has no comment"},
		{"a comment that is another's", "# what a is\na: 1\n", "a has no comment"},
	} {
		if _, err := settings([]byte(c.values)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.says)
		}
	}
	rows, err := settings([]byte("a:\n  # -- What b is,\n  # in two lines.\n  b: {c: <d>}\n"))
	want := setting{Key: "a.b", Default: `{"c":"<d>"}`, About: "What b is, in two lines."}
	if err != nil || len(rows) != 1 || rows[0] != want {
		t.Errorf("got %+v, %v; want %+v", rows, err, want)
	}
}

// TestWhatIsMadeFromTheChartIsUpToDate checks that the files in the repository match the chart. make verify checks all
// generated files. This test names the outdated ones.
func TestWhatIsMadeFromTheChartIsUpToDate(t *testing.T) {
	c := loaded(t)
	for _, file := range plain {
		want, err := file.render(c)
		must(t, err)
		got, err := os.ReadFile(filepath.Join(dir, "..", file.name))
		must(t, err)
		if string(got) != want {
			t.Errorf("deploy/%s is not what the chart makes: run make generate", file.name)
		}
	}
}

func TestNotesNameWhatIsInstalled(t *testing.T) {
	for name, text := range installs {
		_, notes := render(t, Release{Name: "sun", Namespace: "space"}, text)
		for line := range strings.Lines(notes) {
			if strings.Contains(line, "heliostat.dev/mode=") && !strings.Contains(line, "--overwrite") {
				t.Errorf("%s: where the annotation is set already, this fails: %s", name, line)
			}
		}
		if strings.Contains(notes, "<no value>") || strings.Contains(notes, "%!") || !strings.Contains(notes, "kubectl -n space rollout status deployment/") {
			t.Errorf("%s: the notes are\n%s", name, notes)
		}
	}
}
