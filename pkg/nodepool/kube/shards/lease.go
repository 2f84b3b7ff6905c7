package shards

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GroupLabel is on the Lease of each member. Its value names the members that divide RayClusters among them.
	GroupLabel = "heliostat.dev/shards"
	// membersAnnotation lists the members among which the holder divides all RayClusters.
	membersAnnotation = "heliostat.dev/members"
	// addressAnnotation is where the holder serves the REST API.
	addressAnnotation = "heliostat.dev/address"
)

// lease writes the Lease of a member. The times are for people; members look at the version alone.
func (s *Shards) lease(w Write, now time.Time) *coordinationv1.Lease {
	id, seconds, renewed := s.member.ID(), int32(s.timing.Lease/time.Second), metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: id, Namespace: s.config.Namespace, ResourceVersion: w.Version,
			Labels: map[string]string{GroupLabel: s.config.Group},
			Annotations: map[string]string{
				membersAnnotation: strings.Join(w.Members, " "), addressAnnotation: s.config.Address,
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &id, LeaseDurationSeconds: &seconds, AcquireTime: &s.began, RenewTime: &renewed,
		},
	}
}

// recordOf reads the Lease of a member.
func recordOf(l *coordinationv1.Lease) Record {
	return Record{
		ID: l.Name, Version: l.ResourceVersion, Since: l.CreationTimestamp.Unix(),
		Address: l.Annotations[addressAnnotation], Members: strings.Fields(l.Annotations[membersAnnotation]),
	}
}

// leaderOf reads the Lease of the form with one shard; false if nobody holds it.
func leaderOf(l *coordinationv1.Lease) (Record, bool) {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return Record{}, false
	}
	return Record{ID: l.Name, Version: l.ResourceVersion, Everything: true}, true
}
