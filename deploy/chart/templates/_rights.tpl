{{- /* Rights in the served namespaces. A test compares this list with the requests to a real API server. */ -}}
{{- define "heliostat.namespacedRules" -}}
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [get, list, watch, patch] # patch: replicas, workersToDelete and the annotations of requests
- apiGroups: [ray.io]
  resources: [rayjobs, rayservices]
  verbs: [get] # optional: without it, Kueue's queue is only known by the RayCluster's labels
- apiGroups: [heliostat.dev]
  resources: [resourcerequests]
  verbs: [get, list, watch, create, patch, delete] # REST writes for callers with the right; deletes expired ones
- apiGroups: [heliostat.dev]
  resources: [resourcerequests/status]
  verbs: [patch] # the state of each
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch] # of all namespaces, if granted there: they take their part of nodes
- apiGroups: [""]
  resources: [resourcequotas, limitranges]
  verbs: [list, watch] # optional: without it, plans do not know what the namespace may have
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch, create, patch] # reads what node autoscalers report about waiting pods
{{- if or .Values.protectBusy .Values.provisioningRequests }}
- apiGroups: [""]
  resources: [pods]
  verbs: [patch] # annotations for node autoscalers: guards of busy workers, and the ProvisioningRequest of new ones
{{- end }}
{{- if .Values.provisioningRequests }}
- apiGroups: [autoscaling.x-k8s.io]
  resources: [provisioningrequests]
  verbs: [list, watch, create, delete] # the nodes of a whole gang
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [create, delete] # the pods that they are for
{{- end }}
{{- if .Values.warmNodes }}
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacitybuffers]
  verbs: [get, list, watch, create, patch, delete] # nodes without workers, where a capacity policy says so
- apiGroups: [""]
  resources: [podtemplates]
  verbs: [get, create, patch, delete] # the pods that these nodes are for
{{- end }}
- apiGroups: [kueue.x-k8s.io]
  resources: [workloads]
  verbs: [list, watch] # optional: without it, no RayCluster in a queue of Kueue is scaled
{{- if .Values.rayClusterSecretsRbacEnable }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get] # optional: tokens and certificates that RayClusters name
{{- end }}
{{- end -}}

{{- /* Rights on cluster-scoped objects. */ -}}
{{- define "heliostat.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch] # optional: without it, Heliostat does not know where pods can land
{{- if and .Values.singleNamespaceInstall .Values.allPodsRbacEnable }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch] # optional: without it, nodes count as empty
{{- end }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: {{ .Values.singleNamespaceInstall | ternary "[get]" "[get, list, watch]" }} # optional: without it, RayClusters without a mode of their own are not written to
{{- if or (not .Values.singleNamespaceInstall) .Values.allPodsRbacEnable }}
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, resourceclaims, deviceclasses, resourceclaimtemplates]
  verbs: [list, watch] # optional: without it, plans do not count devices of Dynamic Resource Allocation
{{- end }}
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [list] # optional: without it, Karpenter's pools have no limit
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [list, watch] # optional: without it, an out-of-stock group is found later
- apiGroups: [kueue.x-k8s.io]
  resources: [clusterqueues, cohorts]
  verbs: [list, watch] # optional: without it, growth beyond a quota is found out by trying
{{- if eq .Values.api.exposure "network" }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create] # authenticates callers of the REST API
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create] # authorizes them
{{- end }}
{{- end -}}

{{- define "heliostat.subjects" -}}
- kind: ServiceAccount
  name: {{ include "heliostat.serviceAccount" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
