package nodes

import (
	"hash/maphash"
	"reflect"
	"strings"
	"sync/atomic"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// podKinds lets pods that were made from one template share what they take and what others see of them, which is most
// of what is kept of a pod. It knows the last pod of each of some kinds, and is safe for concurrent use.
type podKinds [1024]atomic.Pointer[decode.BoundPod]

var podKindSeed = maphash.MakeSeed()

// share replaces the parts of a pod that are equal to those of the last pod of its kind.
func (k *podKinds) share(pod *decode.BoundPod) {
	slot := &k[maphash.String(podKindSeed, pod.Namespace+"/"+templateOf(pod.Name))%uint64(len(k))]
	if last := slot.Load(); last != nil {
		if reflect.DeepEqual(last.Takes, pod.Takes) {
			pod.Takes = last.Takes
		}
		if reflect.DeepEqual(last.Requests, pod.Requests) {
			pod.Requests = last.Requests
		}
		if reflect.DeepEqual(last.Neighbors, pod.Neighbors) {
			pod.Neighbors = last.Neighbors
		}
	}
	slot.Store(pod)
}

// templateOf returns a pod's name without what controllers append to it.
func templateOf(pod string) string {
	if at := strings.LastIndexByte(pod, '-'); at > 0 {
		return pod[:at]
	}
	return pod
}
