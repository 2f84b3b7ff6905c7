package nodeobject

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeClaimResource are Karpenter's nodes to come, a kind of the whole Kubernetes cluster.
var NodeClaimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

var NodePoolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
