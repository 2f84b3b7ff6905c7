package nodepool

// Buffers is what is known about the CapacityBuffers of a RayCluster, which ask a node autoscaler for warm nodes.
type Buffers struct {
	// Unread says why they are unknown for now; empty if they are known.
	Unread string
	// Missing says why this process can make none; empty if it can.
	Missing string
	// List are those that Heliostat made for this RayCluster.
	List []Buffer
	// Templates say by group what a buffer for its pods is made of now (Buffer.Template). It has the groups for which
	// the policy wants nodes.
	Templates map[string]string
}

// Of returns the buffer of a group that is not being deleted; nil if there is none.
func (b *Buffers) Of(group string) *Buffer {
	for i := range b.List {
		if b.List[i].Group == group && !b.List[i].Deleting {
			return &b.List[i]
		}
	}
	return nil
}

// Buffer asks for nodes with room for several pods of one group that no pod uses.
type Buffer struct {
	Name, UID, Group string
	Pods             int64
	// Template identifies what the buffer's PodTemplate says.
	Template string
	// Broken: the node autoscaler cannot use the buffer, for example because its PodTemplate is gone. Provided: it says
	// that the nodes exist or are launched. Answer is what it says, with its reason; empty if nothing yet.
	Broken, Provided bool
	Answer           string
	Deleting         bool
}

// BufferChange creates or changes a buffer with its PodTemplate, or removes both.
type BufferChange struct {
	Cluster ClusterKey
	// UID is that of the RayCluster.
	UID string
	// Buffer is as it should be. Of one that is removed, Name and UID count.
	Buffer Buffer
	Remove bool
}
