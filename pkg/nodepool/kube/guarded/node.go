package guarded

import corev1 "k8s.io/api/core/v1"

// NodeAnnotation sets one annotation of the node as it was read:
//
//	test /metadata/uid
//	test /metadata/annotations/KEY        its value, or null for absence
//	add  /metadata/annotations/KEY        or /metadata/annotations if there is none at all
func NodeAnnotation(node *corev1.Node, key, value string) []Operation {
	patch := []Operation{{"test", "/metadata/uid", string(node.UID)}}
	if len(node.Annotations) == 0 {
		return append(patch,
			Operation{"test", "/metadata/annotations", nil},
			Operation{"add", "/metadata/annotations", map[string]string{key: value}})
	}
	path := "/metadata/annotations/" + escape(key)
	var stored any
	if text, set := node.Annotations[key]; set {
		stored = text
	}
	return append(patch, Operation{"test", path, stored}, Operation{"add", path, value})
}
