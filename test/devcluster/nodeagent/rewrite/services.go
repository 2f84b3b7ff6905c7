package rewrite

import (
	"context"
	"regexp"
)

// serviceName matches <service>.<namespace>.svc, with or without the cluster's domain. The machine has no cluster DNS
// and no service proxy, so the address of a pod replaces the name of a Service before a container starts.
var serviceName = regexp.MustCompile(
	`\b([a-z](?:[-a-z0-9]*[a-z0-9])?)\.([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)\.svc(?:\.cluster\.local)?\b`)

// Lookup returns the address of a pod of a Service.
type Lookup func(ctx context.Context, namespace, service string) (string, error)

// replaceServices replaces the full names of Services in text with addresses.
func replaceServices(ctx context.Context, text string, find Lookup) (string, error) {
	var failed error
	replaced := serviceName.ReplaceAllStringFunc(text, func(name string) string {
		parts := serviceName.FindStringSubmatch(name)
		ip, err := find(ctx, parts[2], parts[1])
		if err != nil {
			failed = err
		}
		return ip
	})
	return replaced, failed
}
