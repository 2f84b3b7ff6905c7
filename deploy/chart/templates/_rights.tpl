{{- /* What is done in the namespaces that are served. A test holds this list to what the API server is really asked for. */ -}}
{{- define "heliostat.namespacedRules" -}}
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [get, list, watch, patch] # patch: replicas, workersToDelete and the annotations of requests
- apiGroups: [ray.io]
  resources: [rayjobs, rayservices]
  verbs: [get] # optional: whether Kueue queues the owner of a RayCluster; without it the RayCluster's own labels decide
- apiGroups: [heliostat.dev]
  resources: [resourcerequests]
  verbs: [get, list, watch, create, patch, delete] # what REST does for callers who may; expired ones are deleted
- apiGroups: [heliostat.dev]
  resources: [resourcerequests/status]
  verbs: [patch] # what becomes of each
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch] # pods are taken away by the KubeRay operator alone
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch, create, patch] # read: what node autoscalers say of pods that wait
{{- if .Values.rayClusterSecretsRbacEnable }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get] # optional: tokens and certificates of RayClusters that ask for them
{{- end }}
{{- end -}}

{{- /* What has no namespace. */ -}}
{{- define "heliostat.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch] # optional: without it nothing is said of where pods can land
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch] # optional: without it namespaces are polled by name, where singleNamespaceInstall grants that
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [list] # optional: without it nothing bounds what Karpenter may add; no harm where it is not installed
- apiGroups: [karpenter.sh]
  resources: [nodeclaims]
  verbs: [list, watch] # optional: without it no node on its way is seen, and it takes longer to find a group out of stock
{{- if eq .Values.api.exposure "network" }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create] # who calls the REST API
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create] # what a caller may do
{{- end }}
{{- end -}}

{{- define "heliostat.subjects" -}}
- kind: ServiceAccount
  name: {{ include "heliostat.serviceAccount" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
