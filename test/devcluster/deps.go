//go:build deps

package devcluster

import (
	_ "github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	_ "sigs.k8s.io/yaml"
)
