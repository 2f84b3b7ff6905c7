package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// The fixes of two findings about one number would contradict each other.
func TestANumberThatTheOperatorCannotDecodeHasOneFinding(t *testing.T) {
	for _, name := range []string{"replicas", "minReplicas", "maxReplicas"} {
		for _, value := range []float64{-1e308, -1e15, -3e9, 3e9, 1e15, 1e308} {
			t.Run(fmt.Sprint(name, " ", value), func(t *testing.T) {
				cluster := objects(t, "testdata/shows/field-out-of-range.yaml")
				field(t, cluster[0], "/spec/workerGroupSpecs/0/replicas", 1)
				field(t, cluster[0], "/spec/workerGroupSpecs/0/"+name, value)
				codes := codesOf(examine(t, cluster))
				if !slices.Equal(codes, []string{"field-out-of-range"}) {
					t.Errorf("codes %v, want field-out-of-range alone", codes)
				}
			})
		}
	}
}

// Checks about the autoscaler's version may leave out the operator's words only where they report an error themselves.
func TestWhatTheOperatorRefusesOfTheAutoscalerIsAnError(t *testing.T) {
	const idle, version = "/spec/workerGroupSpecs/0/idleTimeoutSeconds", "/spec/autoscalerOptions/version"
	env := func(variable map[string]any) func(*testing.T, []map[string]any) {
		return set(0, "/spec/headGroupSpec/template/spec/containers/0/env", []any{variable})
	}
	const name = "RAY_enable_autoscaler_v2"
	for want, changes := range map[string][]func(*testing.T, []map[string]any){
		"spec-refused":               {set(0, idle, -1)},
		"operator-refuses":           {set(0, idle, nil), set(0, "/spec/autoscalerOptions/idleTimeoutSeconds", -1), set(0, version, nil), env(map[string]any{"name": name, "value": "1"})},
		"idle-timeout-refused":       {set(0, idle, 5), set(0, version, nil)},
		"autoscaler-version-differs": {set(0, idle, nil), env(map[string]any{"name": name, "value": "1"})},
		"spec-refused of a variable": {set(0, idle, nil), env(map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}})},
	} {
		cluster := objects(t, "testdata/shows/idle-timeout-negative.yaml")
		for _, change := range changes {
			change(t, cluster)
		}
		found := slices.DeleteFunc(examine(t, cluster), func(f doctor.Finding) bool { return f.Severity != "error" })
		if code, _, _ := strings.Cut(want, " "); !slices.Equal(codesOf(found), []string{code}) {
			t.Errorf("%s: errors %v", want, found)
		}
	}
}

// Each node of the group has 8 CPUs and one GPU.
func TestWhatAServiceWantsOfOneNodeIsComparedWithItsGroups(t *testing.T) {
	const absent, service = "demand-fits-no-group", `
apiVersion: ray.io/v1
kind: RayService
metadata: {name: llm, namespace: ml}
spec:
  serveConfigV2: "applications: [{name: a, import_path: a:b, deployments: [{name: d, %s}]}]"
  rayClusterConfig:
    rayVersion: 2.52.0
    headGroupSpec: {rayStartParams: {num-cpus: "0"}, template: {spec: {containers: [{name: h, image: i, resources: {limits: {cpu: 2, memory: 4Gi}}}]}}}
    workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {containers: [{name: w, image: i, resources: {limits: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}}}]}}},
      {groupName: neuron, maxReplicas: 4, template: {spec: {containers: [{name: w, image: i, resources: {limits: {cpu: 8, memory: 32Gi, aws.amazon.com/neuron: 1}}}]}}}]
`
	for deployment, code := range map[string]string{
		"num_replicas: 2": "",
		"ray_actor_options: {resources: {neuron_cores: 2}}":                                            "", // Ray detects them
		"ray_actor_options: {resources: {HPU: 1}}":                                                     absent,
		"}], args: {llm_configs: [{placement_group_config: {bundles: [{GPU: 8}]}}]}, x: [{":            absent,
		"}], args: {llm_configs: [{placement_group_config: {bundles: [{GPU: 1}, {GPU: 1}]}}]}, x: [{":  "",
		"}], args: {llm_configs: [a.yaml]}, x: [{":                                                     "",
		"ray_actor_options: {num_gpus 1}, num_replicas: [":                                             "operator-refuses",
		"ray_actor_options: {num_gpus: 1, num_cpus: 8}":                                                "",
		"ray_actor_options: {num_gpus: 0.5, memory: 1000}":                                             "",
		"ray_actor_options: {num_gpus: 2}":                                                             absent,
		"ray_actor_options: {resources: {A100: 1}}":                                                    absent,
		"ray_actor_options: {resources: {'accelerator': here}}":                                        "",
		"ray_actor_options: {num_gpus: 1}, placement_group_bundles: [{GPU: 1}, {GPU: 1}]":              "",
		"placement_group_bundles: [{GPU: 1}, {GPU: 1}], placement_group_strategy: STRICT_PACK":         absent,
		"placement_group_bundles: [{CPU: 1}, {GPU: 2}], placement_group_strategy: SPREAD":              absent,
		"placement_group_bundles: [{CPU: 1}, {CPU: 1, GPU: 1}], placement_group_strategy: STRICT_PACK": "",
	} {
		objects := parsed(t, fmt.Sprintf(service, deployment))
		codes := codesOf(examine(t, objects))
		if len(codes) == 0 || codes[0] == "accelerator-uncounted" {
			codes = []string{""}
		}
		if codes[0] != code {
			t.Errorf("%s: found %v, want %q", deployment, codes, code)
		}
	}
}

// Ray's own autoscaler fails on a head without CPUs as on a worker group.
func TestAHeadWithoutCPUsStopsRaysAutoscaler(t *testing.T) {
	for resources, found := range map[string]bool{"{limits: {memory: 4Gi}}": true, "{requests: {cpu: 1}, limits: {memory: 4Gi}}": false} {
		objects, _, err := decode.ReadObjects(strings.NewReader("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a}, spec: " +
			"{enableInTreeAutoscaling: true, workerGroupSpecs: [], headGroupSpec: {template: {spec: {containers: [{name: h, image: i, resources: " + resources + "}]}}}}}"))
		must(t, err)
		if got := slices.Contains(codesOf(examine(t, objects)), "cpu-absent"); got != found {
			t.Errorf("%s: found %v", resources, got)
		}
	}
}

func TestLimitRangesRefuseContainers(t *testing.T) {
	const manifest = `
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: ns}, spec: {enableInTreeAutoscaling: true, headGroupSpec: {template: {spec: {containers: [{name: h, image: i, resources: {%s}}]}}}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}, spec: {limits: [{type: Container, %s}]}}
`
	for _, c := range []struct {
		resources, limits string
		found             bool
	}{
		{"requests: {cpu: 2}", "default: {cpu: 250m}", true},
		{"requests: {cpu: 2}, limits: {cpu: 2}", "default: {cpu: 250m}", false},
		{"requests: {cpu: 2}", "max: {cpu: 1}", true},
		{"limits: {cpu: 2}", "min: {cpu: 3}", true},
		{"", "min: {cpu: 3}", false},
		{"", "default: {cpu: 1}, defaultRequest: {cpu: 500m}", false},
		{"limits: {memory: 2Gi}", "max: {memory: 1Gi}", true},
		{"requests: {cpu: 100m}, limits: {cpu: 301m}", "maxLimitRequestRatio: {cpu: 3}", true},
		{"requests: {cpu: 100m}, limits: {cpu: 300m}", "maxLimitRequestRatio: {cpu: 3}", false},
		{"requests: {cpu: 1}", "maxLimitRequestRatio: {cpu: 3}", true},
		{"requests: {cpu: 2}", "max: {cpu: 3}}, {type: Container, default: {cpu: 1}", true},
		{"requests: {cpu: 2}", "default: {cpu: 1}}, {type: Container, max: {cpu: 3}", false},
		{"limits: {cpu: 2}", "max: {cpu: 2}}, {type: Pod, max: {cpu: 1}", true},
		{"limits: {cpu: 2}", "max: {cpu: 2}}, {type: Pod, max: {cpu: 2}", true}, // with the autoscaler's 500m
		{"limits: {cpu: 2}", "max: {cpu: 2}}, {type: Pod, max: {cpu: 2500m}", false},
		{"requests: {cpu: 2}", "defaultRequest: {cpu: 1}}, {type: Pod, max: {cpu: 3}", false}, // the autoscaler has a limit
	} {
		objects := parsed(t, fmt.Sprintf(manifest, c.resources, c.limits))
		if got := slices.Contains(codesOf(examine(t, objects)), "limit-range-refuses"); got != c.found {
			t.Errorf("%s with %s: found %v", c.resources, c.limits, got)
		}
	}
}

// KubeRay's operator adds an init container to workers, unless its Deployment turns that off.
func TestALimitRangeThatRefusesTheInitContainerOfWorkersIsFound(t *testing.T) {
	const manifest = `
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: ns}, spec: {headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}, workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {containers: [{name: h, image: i, resources: {limits: {memory: 4Gi}}}]}}}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}, spec: {limits: [{type: Container, min: {memory: 512Mi}}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: o, namespace: ns}, spec: {template: {spec: {containers: [{name: o, image: quay.io/kuberay/operator, env: [{name: ENABLE_INIT_CONTAINER_INJECTION, value: "%t"}]}]}}}}
`
	for _, injects := range []bool{true, false} {
		found := codesOf(examine(t, parsed(t, fmt.Sprintf(manifest, injects))))
		if slices.Contains(found, "limit-range-refuses") != injects {
			t.Errorf("injects %t: found %v", injects, found)
		}
	}
}

func TestAQuotaCountsWhatALimitRangeMakesPodsRequest(t *testing.T) {
	const manifest = `
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: ns}, spec: {headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}, workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {containers: [{name: h, image: i}]}}}]}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: ns}, spec: {hard: {%s.cpu: 6}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: %s}, spec: {limits: [{type: Container, default: {cpu: 2}}]}}
`
	for namespace, want := range map[string]string{"ns": "at most 2 pods of the group beside the head", "other": "each container has to state it"} {
		for _, of := range []string{"requests", "limits"} {
			objects, _, err := decode.ReadObjects(strings.NewReader(fmt.Sprintf(manifest, of, namespace)))
			must(t, err)
			said := ""
			for _, f := range examine(t, objects) {
				if f.Code == "quota-exceeded" && strings.Contains(f.Field, "workerGroupSpecs") {
					said += f.Why
				}
			}
			if !strings.HasSuffix(said, want) {
				t.Errorf("with a LimitRange of namespace %s, the quota of %s: says %q, want %q", namespace, of, said, want)
			}
		}
	}
}

// A quota of CPU or memory wants each container to state it (Kubernetes 1.36, pkg/quota/v1/evaluator/core,
// Constraints); what it does not enforce bounds nothing (MatchingResources).
func TestAQuotaRefusesPodsThatDoNotStateWhatItBounds(t *testing.T) {
	const manifest = `
{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: ns}, spec: {enableInTreeAutoscaling: true, autoscalerOptions: {resources: {%s}}, headGroupSpec: {template: {spec: {containers: [{name: h, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}, workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: {%s}}}]}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: ns}, spec: {hard: {%s}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}, spec: {limits: [{type: Container, %s}]}}
`
	const limited, requests, nothing = "limits: {cpu: 1, memory: 1Gi}", "containers: [{name: w, image: i, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]", "max: {ephemeral-storage: 1Ti}"
	for _, c := range []struct{ sidecar, pod, hard, limits, want string }{
		{limited, requests, "limits.cpu: 100", nothing, "error no limits.cpu of w"},
		{limited, requests + ", initContainers: [{name: i, image: i}]", "limits.cpu: 100, cpu: 100", nothing, "error no cpu of i; error no limits.cpu of w, i"},
		{limited, requests, "memory: 100Gi", nothing, "error no memory of w"},
		{limited, requests, "requests.cpu: 100", nothing, ""},
		{limited, requests, "limits.cpu: 100", "default: {cpu: 2}", ""},
		{limited, requests, "memory: 100Gi", "defaultRequest: {memory: 2Gi}", ""},
		{limited, requests, "limits.memory: 100Gi", "defaultRequest: {memory: 2Gi}", "error no limits.memory of w"},
		{limited, requests + ", resources: {limits: {memory: 2Gi}}", "limits.cpu: 100", nothing, ""},
		{"requests: {cpu: 1}", requests, "requests.memory: 100Gi", "defaultRequest: {cpu: 1}", "error no requests.memory of autoscaler; error no requests.memory of w"},
		{limited, requests, "limits.nvidia.com/gpu: 1, nvidia.com/gpu: 1", nothing, ""},
		{limited, requests, "limits.cpu: -4", nothing, ""}, // object-unreadable
		{limited, requests, "pods: 4", nothing, "info 4, and ResourceQuota q has 4 for pods"},
		{limited, requests, "pods: 5", nothing, ""},
		{limited, requests, "requests.nvidia.com/gpu: 1", nothing, "info 4, and ResourceQuota q has 1 for requests.nvidia.com/gpu"},
	} {
		objects := parsed(t, fmt.Sprintf(manifest, c.sidecar, c.pod, c.hard, c.limits))
		var found []string
		for _, f := range examine(t, objects) {
			if f.Code == "quota-exceeded" {
				found = append(found, string(f.Severity)+" "+f.Seen)
			}
		}
		if got := strings.Join(found, "; "); got != c.want {
			t.Errorf("%s with %s, %s: found %q, want %q", c.pod, c.hard, c.limits, got, c.want)
		}
	}
}

func TestLimitsOfANamespaceThatCannotBeReadAreFoundAndNotExamined(t *testing.T) {
	for limits, want := range map[string]string{
		`{kind: LimitRange, spec: {limits: [{type: Container, max: {cpu: lots}}]}}`:     `spec.limits[0].max.cpu is "lots": want a Kubernetes quantity of 0 or more`,
		`{kind: LimitRange, spec: {limits: {type: Container}}}`:                         `spec.limits is {"type":"Container"}: want a list`,
		`{kind: LimitRange, spec: {limits: [{type: 3}, 3, {max: [1]}]}}`:                `spec.limits[0].type is 3: want a stringspec.limits[1] is 3: want an objectspec.limits[2].max is [1]: want an object`,
		`{kind: ResourceQuota, spec: {hard: 3, scopes: 3}}`:                             "spec.hard is 3: want an objectspec.scopes is 3: want a list",
		`{kind: ResourceQuota, status: 5}`:                                              "status is 5: want an object",
		`{kind: ResourceQuota, status: {used: {limits.cpu: x}}}`:                        `status.used["limits.cpu"] is "x": want a Kubernetes quantity of 0 or more`,
		`{kind: ResourceQuota, spec: {hard: {requests.cpu: many, requests.memory: 1}}}`: `spec.hard["requests.cpu"] is "many": want a Kubernetes quantity of 0 or more`,
		`{kind: ResourceQuota, spec: {hard: {limits.cpu: -5}}}`:                         `spec.hard["limits.cpu"] is -5: want a Kubernetes quantity of 0 or more`,
		`{kind: LimitRange, spec: {limits: [{type: Container, min: {cpu: -1}}]}}`:       `spec.limits[0].min.cpu is -1: want a Kubernetes quantity of 0 or more`,
		`{kind: LimitRange, spec: {limits: [{type: container, max: {cpu: 1}}]}}`:        `spec.limits[0].type is "container": want Pod, Container, PersistentVolumeClaim or a qualified name`,
		`{kind: LimitRange, spec: {limits: [{max: {cpu: 1}}]}}`:                         `spec.limits[0].type is "": want Pod, Container, PersistentVolumeClaim or a qualified name`,
		`{kind: LimitRange, spec: {limits: [{type: example.com/a, max: {cpu: 1}}]}}`:    "",
		`{kind: ResourceQuota, spec: {hard: {cpu: 2}}}`:                                 "",
	} {
		objects := parsed(t, strings.Replace(limits, "{kind", "{apiVersion: v1, metadata: {name: l, namespace: ns}, kind", 1))
		read, found := input(t, objects), ""
		for _, f := range doctor.Examine(read) {
			found += f.Seen
		}
		if skipped := doctor.Skipped(read); found != want || read.Objects[0].Examined() != (want == "") || len(skipped) > 0 != (want != "") {
			t.Errorf("%s: found %q, want %q; skipped %v", limits, found, want, skipped)
		}
	}
}

func TestWhatTheEntrypointAsksForIsReportedAtItsField(t *testing.T) {
	for at, value := range map[string]any{"entrypointNumCpus": 1000, "entrypointResources": `{"TPU": 4}`, "entrypointNumGpus": 100} {
		all := objects(t, "testdata/shows/demand-fits-no-group.yaml")
		field(t, all[0], "/spec/entrypointNumGpus", nil)
		field(t, all[0], "/spec/"+at, value)
		found := examine(t, all)
		if len(found) != 1 || found[0].Code != "demand-fits-no-group" || found[0].Field != "spec."+at {
			t.Errorf("%s: found %+v", at, found)
		}
	}
}

func TestAJobThatNothingSubmitsIsAnError(t *testing.T) {
	for _, test := range []struct {
		field, value string
		found        bool
	}{
		{"submissionMode", "httpMode", true}, {"submissionMode", "HTTPMode", false}, {"submissionMode", "InteractiveMode", false},
		{"entrypointResources", `{'TPU': 1}`, true}, {"entrypointResources", `[1]`, true}, {"entrypointResources", `{"CPU": 0}`, false},
	} {
		all := objects(t, "testdata/clean/demand-fits-no-group.yaml")
		field(t, all[0], "/spec/"+test.field, test.value)
		found := slices.ContainsFunc(examine(t, all), func(f doctor.Finding) bool {
			return f.Code == "operator-refuses" && f.Field == "spec."+test.field && f.Seen == test.value
		})
		if found != test.found {
			t.Errorf("%s %s: found %t, want %t", test.field, test.value, found, test.found)
		}
	}
}
