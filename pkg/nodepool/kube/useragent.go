package kube

import (
	"cmp"

	"k8s.io/client-go/rest"
)

// naming returns a configuration whose calls name a part of this process, or this process, at the end of their user
// agent. Audit logs show it.
func naming(config *rest.Config, name string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent()) + " " + name
	return config
}
