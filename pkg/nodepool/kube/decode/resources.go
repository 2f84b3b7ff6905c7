package decode

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeClaimResource are Karpenter's NodeClaims, which have no namespace.
var NodeClaimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// NodePoolResource are Karpenter's NodePools, which have no namespace.
var NodePoolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
