{{- define "heliostat.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "heliostat.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "heliostat.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Cluster-scoped objects of all releases share one set of names. */ -}}
{{- define "heliostat.clusterName" -}}
{{- if .Values.singleNamespaceInstall -}}
{{- printf "%s-%s" (include "heliostat.fullname" .) .Release.Namespace -}}
{{- else -}}
{{- include "heliostat.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "heliostat.selector" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "heliostat.agentSelector" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "heliostat.labels" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: heliostat
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "heliostat.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "heliostat.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "heliostat.image" -}}
{{- $image := index . 0 -}}{{- $chart := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The served namespaces, as JSON; [] for all. */ -}}
{{- define "heliostat.namespaces" -}}
{{- if .Values.watchNamespace -}}
{{- .Values.watchNamespace | uniq | toJson -}}
{{- else if .Values.singleNamespaceInstall -}}
{{- list .Release.Namespace | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- define "heliostat.tlsSecret" -}}
{{- if eq .Values.api.tls.source "existingSecret" -}}
{{- required "api.tls.source is existingSecret: set api.tls.existingSecret to a Secret of type kubernetes.io/tls" .Values.api.tls.existingSecret -}}
{{- else -}}
{{- include "heliostat.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{- /* DNS names of the API, as JSON. */ -}}
{{- define "heliostat.dnsNames" -}}
{{- $name := include "heliostat.fullname" . -}}{{- $namespace := .Release.Namespace -}}
{{- concat (list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) "localhost") .Values.api.tls.dnsNames | toJson -}}
{{- end -}}

{{- /* Flags that values of the chart set, together with ports, volumes and rights; and those values. */ -}}
{{- define "heliostat.owned" -}}
mode: mode
namespaces: watchNamespace
leaderelect: leaderElectionEnabled
leasename: fullnameOverride
leasenamespace: helm's --namespace
clusterautoscalernamespace: clusterAutoscalerNamespace
logformat: logging.format
loglevel: logging.level
listen: api.exposure and api.port
insecurenoauth: api.exposure
advertiseaddress: api.exposure
tlscertfile: api.tls
tlskeyfile: api.tls
tokenaudiences: api.tokenAudiences
metricsbindaddress: metrics.enabled and metrics.port
healthprobebindaddress: health.port
protectbusy: protectBusy
provisioningrequests: provisioningRequests
warmnodes: warmNodes
pools: pools
topologylabel: topologyLabels
{{- end -}}

{{- /* Values of the last release, with what to use instead. values.schema.json accepts them, so that this is the error. */ -}}
{{- define "heliostat.removed" -}}
config.surge: give maxReplicas room for replacements above what the work needs
networkPolicy.egress.dashboardPort: Heliostat calls no dashboard
api.requestsPerSecond: 'use config: {requests-per-second: 500}'
kubeClient: 'use config: {kube-api-qps: 100}; twice as many requests may be sent at once'
planBudget: the number of different requests bounds a plan, and no time does
keepCosts: sum the counter heliostat_cost_total in Prometheus (docs/reference/costs.md)
metrics.podMonitor: use metrics.serviceMonitor
networkPolicy.egress.gcsPort: allow other ports of the GCS with networkPolicy.egress.extra
api.tls.clientCA: callers send a token; see api.tokenAudiences
api.tls.selfSigned: the certificate that Helm makes is valid for ten years; for another one, use another api.tls.source
api.tls.certManager.renewBefore: cert-manager renews a certificate when a third of api.tls.certManager.duration is left
podDisruptionBudget.maxUnavailable: one pod may be unavailable
revisionHistoryLimit: Kubernetes keeps 3 old ReplicaSets
terminationGracePeriodSeconds: a pod has 10 s to end
prices: put them into pools, with the price of a pool beside its name (docs/reference/costs.md)
forecast: use schedules of a capacity policy, or a longer idle timeout
requestMemory: the CRD bounds a ResourceRequest; to bound their number, use a ResourceQuota
{{- end -}}

{{- /* Checks that values.schema.json cannot express. */ -}}
{{- define "heliostat.check" -}}
{{- range $path, $instead := include "heliostat.removed" . | fromYaml -}}
{{- $value := $.Values.AsMap -}}
{{- range splitList "." $path -}}
{{- $value = kindIs "map" $value | ternary $value dict | dig . nil -}}
{{- end -}}
{{- if not (kindIs "invalid" $value) -}}
{{- fail (printf "%s was removed; %s" $path $instead) -}}
{{- end -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElectionEnabled) -}}
{{- fail "replicas: without leaderElectionEnabled, several pods would all decide; set replicas: 1" -}}
{{- end -}}
{{- if and .Values.shardsEnabled (not .Values.leaderElectionEnabled) -}}
{{- fail "shardsEnabled: shards have Leases, so set leaderElectionEnabled: true" -}}
{{- end -}}
{{- if and .Values.shardsEnabled (eq .Values.api.exposure "loopback") -}}
{{- fail "shardsEnabled: shards pass calls on to one another, so api.exposure must not be loopback" -}}
{{- end -}}
{{- $ports := list (int .Values.health.port) -}}
{{- if .Values.metrics.enabled -}}{{- $ports = append $ports (int .Values.metrics.port) -}}{{- end -}}
{{- if ne .Values.api.exposure "none" -}}{{- $ports = append $ports (int .Values.api.port) -}}{{- end -}}
{{- if ne (len $ports) (len (uniq $ports)) -}}
{{- fail (printf "api.port, metrics.port and health.port: %v; want different ports" $ports) -}}
{{- end -}}
{{- $owned := include "heliostat.owned" . | fromYaml -}}
{{- range $key := keys .Values.config -}}
{{- with get $owned (lower $key | replace "-" "") -}}
{{- fail (printf "config.%s: overrides what the chart sets; set %s instead" $key .) -}}
{{- end -}}
{{- end -}}
{{- range $arg := .Values.extraArgs -}}
{{- with get $owned (splitList "=" $arg | first | replace "-" "") -}}
{{- fail (printf "extraArgs: %s: overrides what the chart sets; set %s instead" $arg .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.env -}}
{{- if hasPrefix "HELIOSTAT_" .name -}}
{{- $name := .name -}}
{{- with get $owned (trimPrefix "HELIOSTAT_" $name | lower | replace "_" "") -}}
{{- fail (printf "env: %s: overrides what the chart sets; set %s instead" $name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
