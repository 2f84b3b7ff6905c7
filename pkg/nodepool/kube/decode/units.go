package decode

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Amount rounds up to 1/10000, finer than the 1/1000 that Kubernetes counts CPU in, and stops at the largest Amount.
func Amount(q resource.Quantity) raydemand.Amount {
	switch most := int64(raydemand.MaxAmount / raydemand.One); {
	case q.CmpInt64(most) >= 0:
		return raydemand.MaxAmount
	case q.CmpInt64(-most) <= 0:
		return -raydemand.MaxAmount
	}
	return raydemand.Amount(q.ScaledValue(-4))
}

// extended reports whether Kubernetes treats the resource as an extended one, which cannot be overcommitted.
func extended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
