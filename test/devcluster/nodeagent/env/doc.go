// Package env resolves a container's environment with the rules of the kubelet: env, envFrom, the downward API, and
// $(NAME) references.
//
// It must not know clients or processes: Source reads the ConfigMaps and Secrets.
package env
